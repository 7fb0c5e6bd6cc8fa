// Rendering of diagnostics, and the search for the nearest valid word.
#include "ir/support/diag.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/support/diag_codes.h"
#include "ir/support/printable.h"

namespace lathe {
namespace {

constexpr size_t kMaxShownLine = 100;  // bytes of a source line around the column
constexpr size_t kMaxNames = 4;        // places listed in one made-by note

std::string paint(std::string_view text, const char* color, const RenderOptions& options) {
  return options.color ? fmt::format("\x1b[{}m{}\x1b[0m", color, text) : std::string(text);
}

// What is quoted from files may be as long as they are.
std::string cut(std::string_view text) {
  constexpr size_t kMostBytes = 2000;
  if (text.size() <= kMostBytes) return std::string(text);
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // whole UTF-8
  return fmt::format("{} ... and {} bytes more", text.substr(0, end), text.size() - end);
}

std::string shown_line(std::string_view text) { return printable_line(cut(text)); }
std::string shown_lines(std::string_view text) { return printable_lines(cut(text)); }

// A source line on one row of the terminal, where tabs are spaces.
std::string printable_code(std::string_view code) {
  std::string out(code);
  std::replace(out.begin(), out.end(), '\t', ' ');
  return printable_line(out);
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return text;
}

// Of a character in UTF-8. Bytes that are none may be cut anywhere: the column stays in the window.
constexpr int kMostContinuationBytes = 3;
bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The source line of a text location, indented, with a caret below its column. A long line is cut
// to a window around the column.
std::string render_text_line(const LocRow& row, std::string_view indent,
                             const RenderOptions& options) {
  std::string line = row.source_line;
  const int behind = std::max(row.column - 1 - row.source_begin, 0);
  size_t column = std::min(static_cast<size_t>(behind), line.size());
  if (line.size() > kMaxShownLine) {
    size_t start = column > kMaxShownLine / 2 ? column - kMaxShownLine / 2 : 0;
    for (int i = 0; i < kMostContinuationBytes && start > 0 && is_continuation_byte(line[start]);
         ++i)
      --start;
    size_t end = std::min(start + kMaxShownLine, line.size());
    for (int i = 0;
         i < kMostContinuationBytes && end < line.size() && is_continuation_byte(line[end]); ++i)
      ++end;
    const std::string head = start > 0 || row.source_begin > 0 ? "..." : "";
    const std::string tail = end < line.size() ? "..." : "";
    line = head + line.substr(start, end - start) + tail;
    column = column - start + head.size();
  }
  const std::string before = printable_code(std::string_view(line).substr(0, column));
  std::string out = fmt::format("{}{}{}\n", indent, before,
                                printable_code(std::string_view(line).substr(column)));
  if (row.column <= 0) return out;
  const auto width =
      std::count_if(before.begin(), before.end(), [](char c) { return !is_continuation_byte(c); });
  return out + fmt::format("{}{:{}}{}\n", indent, "", width, paint("^", "32", options));
}

// "model.py:12" or "file.json:7:14"; "" when the row names no file.
std::string place(const LocRow& row, const LocTable& locs) {
  if (row.kind == LocRow::Kind::python && row.frame >= 0) {
    const Frame& frame = locs.frame(locs.user_frame(row.frame));
    return fmt::format("{}:{}", shown_line(frame.file), frame.line);
  }
  if (row.kind != LocRow::Kind::text) return "";
  std::string text = shown_line(row.file);
  if (row.line > 0) text += fmt::format(":{}", row.line);
  if (row.line > 0 && row.column > 0) text += fmt::format(":{}", row.column);
  return text;
}

// The source line below a place, or "".
std::string source(const LocRow& row, const LocTable& locs, std::string_view indent,
                   const RenderOptions& options) {
  if (row.kind == LocRow::Kind::text)
    return row.source_line.empty() ? "" : render_text_line(row, indent, options);
  if (row.kind != LocRow::Kind::python || row.frame < 0) return "";
  const std::string code = printable_code(trim(locs.frame(locs.user_frame(row.frame)).code));
  return code.empty() ? "" : fmt::format("{}{}\n", indent, code);
}

std::string_view last_component(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == dotted.npos ? dotted : dotted.substr(dot + 1);
}

// "  in module encoder.layers.3.proj (Linear), node addmm_17\n", as much of it as is known.
std::string module_line(const LocRow& row) {
  if (row.kind != LocRow::Kind::python) return "";
  std::string line;
  if (!row.module_path.empty()) line = "in module " + row.module_path;
  if (!row.module_class.empty()) {
    line += line.empty() ? "in the model " : " ";
    line += fmt::format("({})", last_component(row.module_class));
  }
  if (!row.fx_node.empty()) line += (line.empty() ? "at node " : ", node ") + row.fx_node;
  return line.empty() ? "" : fmt::format("  {}\n", shown_line(line));
}

// What a location is called in a made-by note.
std::string short_name(Loc loc, const LocTable& locs) {
  const LocRow& row = locs[locs.origin(loc)];
  if (!row.fx_node.empty()) return shown_line(row.fx_node);
  const std::string where = place(row, locs);
  return where.empty() ? "an unknown place" : where;
}

std::string made_by(const LocRow& row, const LocTable& locs) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (Loc from : row.from) {
    std::string name = short_name(from, locs);
    if (seen.insert(name).second) names.push_back(std::move(name));
  }
  std::string list;
  for (size_t i = 0; i < names.size() && i < kMaxNames; ++i)
    list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxNames) list += fmt::format(" and {} more", names.size() - kMaxNames);
  return fmt::format("  note: made by {} from {}\n", shown_line(row.by), list);
}

// The pass that made the location, or with full_chain every pass behind it, newest first.
std::string made_by_chain(Loc loc, const LocTable& locs, const RenderOptions& options) {
  std::string out;
  std::set<Loc> seen;
  std::vector<Loc> pending = {loc};
  while (!pending.empty()) {
    const Loc next = pending.back();
    pending.pop_back();
    const LocRow& row = locs[next];
    if (row.kind != LocRow::Kind::derived || !seen.insert(next).second) continue;
    out += made_by(row, locs);
    if (options.full_chain) pending.insert(pending.end(), row.from.rbegin(), row.from.rend());
  }
  return out;
}

// Every frame from the innermost outwards, but for the one the headline shows.
std::string frames(const LocRow& row, const LocTable& locs) {
  std::string out;
  if (row.kind != LocRow::Kind::python || row.frame < 0) return out;
  const int32_t shown = locs.user_frame(row.frame);
  for (int32_t i = row.frame; i >= 0; i = locs.frame_parent(i)) {
    if (i == shown) continue;
    const Frame& frame = locs.frame(i);
    out += fmt::format("  {} {}:{} in {}\n", i > shown ? "through" : "called from",
                       shown_line(frame.file), frame.line,
                       frame.function.empty() ? "?" : shown_line(frame.function));
    if (!frame.code.empty()) out += fmt::format("      {}\n", printable_code(trim(frame.code)));
  }
  return out;
}

std::string render_note(const Note& note, const LocTable& locs, const RenderOptions& options) {
  const LocRow& row = locs[locs.origin(note.loc)];
  const std::string where = place(row, locs);
  std::string out =
      fmt::format("  {}: {}", paint("note", "36", options), shown_lines(note.message));
  if (!where.empty()) out += " at " + where;
  return out + "\n" + source(row, locs, "      ", options);
}

// Edit distance (insert, delete, replace), at most `limit` + 1.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string render(const Diag& diag, const LocTable& locs, const RenderOptions& options) {
  const LocRow& row = locs[locs.origin(diag.loc)];
  const std::string where = place(row, locs);
  std::string out = where.empty() ? "" : where + ": ";
  out += paint(fmt::format("error[{}]", diag.code), "1;31", options);
  out += fmt::format(": {}\n", shown_lines(diag.message));
  out += source(row, locs, "    ", options);
  out += module_line(row);
  if (options.full_chain) out += frames(row, locs);
  for (const std::string& line : diag.rows) out += fmt::format("  {}\n", shown_lines(line));
  for (const Note& note : diag.notes) out += render_note(note, locs, options);
  out += made_by_chain(diag.loc, locs, options);
  if (diag.is_internal) out += "  note: this is a mistake in Lathe, not in the input\n";
  return out;
}

Diag internal_error(std::string message, const char* file, int line) {
  Diag diag{code::kInternal, Loc::unknown(), fmt::format("{} ({}:{})", message, file, line)};
  diag.is_internal = true;
  return diag;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestTypo = 100;
  if (word.size() > kLongestTypo) return "";
  size_t limit = 1 + word.size() / 3;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate, limit);
    if (distance > limit || (best != nullptr && distance == limit)) continue;
    best = &candidate;
    limit = distance;
  }
  return best == nullptr ? "" : *best;
}

}  // namespace lathe
