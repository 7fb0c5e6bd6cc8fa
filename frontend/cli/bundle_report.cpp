#include "frontend/cli/bundle_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frontend/bundle/groups.h"
#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/terminal.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using bundle::Break;
using bundle::BreakGroup;
using bundle::Bundle;
using bundle::BundleFiles;
using bundle::CauseGroup;
using bundle::Compile;
using bundle::Frame;
using bundle::Recompile;

constexpr size_t kRowsShown = 16;  // without --all
constexpr int64_t kLinesAround = 2;
constexpr size_t kNumberRoom = 6;

std::string place_of(const std::string& file, int64_t line) {
  return file.empty() ? "" : fmt::format("{}:{}", file, line);
}

std::string frame_text(const Frame* frame) {
  if (frame == nullptr) return "";
  return fmt::format("{}{} {}", frame->function, frame->is_resumed ? ", resumed" : "",
                     place_of(frame->file, frame->line));
}

std::string end_of(const Compile& compile, const std::vector<BreakGroup>& breaks) {
  if (compile.failure) return "not compiled: " + *compile.failure;
  for (size_t i = 0; i < breaks.size(); ++i)
    if (breaks[i].ends(compile.id())) return fmt::format("break {}", i + 1);
  return compile.graph ? compile.graph->ends : "";
}

std::string compiles_table(const Bundle& bundle, const std::vector<BreakGroup>& breaks, bool all) {
  Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
  table.add({"graph", "frame", "ops", "call", "compiled in", "ends at"});
  for (size_t i = 0; i < bundle.compiles.size() && (all || i < kRowsShown); ++i) {
    const Compile& row = bundle.compiles[i];
    table.add({row.id(), cut(frame_text(bundle.find_frame(row.frame)), all ? kUncut : 40),
               row.graph ? format_count(row.graph->ops) : "none",
               row.call ? format_count(*row.call) : "",
               row.seconds ? format_ms(*row.seconds * 1e3) : "",
               cut(end_of(row, breaks), all ? kUncut : 30)});
    if (row.graph && row.graph->refused)
      table.add_line(cut("    no JSON for Lathe: " + *row.graph->refused, all ? kUncut : 100));
  }
  std::string text = table.str(2);
  if (!all && bundle.compiles.size() > kRowsShown)
    text += fmt::format("  {} more; --all shows every one\n", bundle.compiles.size() - kRowsShown);
  return text;
}

// The code around a line, the line itself marked.
std::string code_around(const Bundle& bundle, const Break& row) {
  std::string text;
  for (const bundle::SourceLine& line : bundle::lines_around(bundle, row, kLinesAround))
    text += fmt::format("  {} {:>{}}  {}\n", line.number == row.line ? ">" : " ", line.number,
                        kNumberRoom, line.code);
  return text;
}

std::string breaks_text(const Bundle& bundle, const std::vector<BreakGroup>& groups, bool all) {
  std::string text;
  for (size_t i = 0; i < groups.size() && (all || i < kRowsShown); ++i) {
    const Break& row = *groups[i].first;
    text += fmt::format("\nbreak {}   {}   ends {}\n", i + 1, place_of(row.file, row.line),
                        fmt::join(groups[i].graphs, ", "));
    text += wrap(row.reason, output_width(), 2) + code_around(bundle, row);
    for (size_t h = 0; h < row.hints.size() && (all || h < 1); ++h)
      text += wrap("hint: " + row.hints[h], output_width(), 4);
    if (all && !row.explanation.empty()) text += wrap(row.explanation, output_width(), 4);
    if (all && !row.url.empty()) text += "    " + row.url + "\n";
  }
  if (!all && groups.size() > kRowsShown)
    text += fmt::format("\n{} more breaks; --all shows every one\n", groups.size() - kRowsShown);
  return text;
}

std::string recompiles_text(const Bundle& bundle, const std::vector<CauseGroup>& groups, bool all) {
  std::string text = groups.empty() ? "" : "\n";
  for (size_t i = 0; i < groups.size() && (all || i < kRowsShown); ++i) {
    const Recompile& cause = *groups[i].cause;
    text += fmt::format("call {} recompiles {}   {}\n", cause.call,
                        bundle::id_of(cause.frame, cause.compile),
                        frame_text(bundle.find_frame(cause.frame)));
    text += wrap(cause.reason, output_width(), 4);
    if (cause.line > 0)
      text += fmt::format("    {}  {}\n", place_of(cause.file, cause.line), cause.code);
    if (!groups[i].follow.empty())
      text +=
          wrap(fmt::format("and for it {}", fmt::join(groups[i].follow, ", ")), output_width(), 4);
    for (size_t r = 1; all && r < cause.reasons.size(); ++r)
      text += fmt::format("    {}\n", cause.reasons[r].substr(0, cause.reasons[r].find('\n')));
  }
  if (!all && groups.size() > kRowsShown)
    text += fmt::format("{} more causes; --all shows every one\n", groups.size() - kRowsShown);
  return text;
}

Status show_guards(const BundleFiles& files, const Compile& compile) {
  if (!compile.guards) return Ok{};
  LATHE_TRY(const FileBytes text, files.read(*compile.guards + ".txt"));
  say("\nguards of {}\n{}\n", compile.id(), text.text());
  return Ok{};
}

Status show_all(const BundleFiles& files, const Bundle& bundle, const BundleRequest& request) {
  const std::vector<BreakGroup> breaks = group_breaks(bundle);
  const std::vector<CauseGroup> causes = group_recompiles(bundle);
  const std::string of_causes =
      causes.empty() ? "" : " of " + plural(static_cast<int64_t>(causes.size()), "cause");
  say("{}   {}, captured by {} of torch {} in {}\n",
      styled(request.path, Style::bold, color_on_stdout()), bundle.model, bundle.origin,
      bundle.torch, plural(bundle.calls, "call"));
  say("  {}, {}, {}, {}{}\n\n", plural(static_cast<int64_t>(bundle.frames.size()), "frame"),
      plural(static_cast<int64_t>(bundle.graph_ids().size()), "graph"),
      plural(static_cast<int64_t>(breaks.size()), "graph break"),
      plural(static_cast<int64_t>(bundle.recompiles.size()), "recompile"), of_causes);
  say(compiles_table(bundle, breaks, request.all));
  say(breaks_text(bundle, breaks, request.all));
  say(recompiles_text(bundle, causes, request.all));
  if (request.guards)
    for (const Compile& compile : bundle.compiles) LATHE_DO(show_guards(files, compile));
  const std::vector<std::string> ids = bundle.graph_ids();
  if (ids.empty()) return Ok{};
  say("\nNext: ./lathe explain {} --graph {}     its Python, inputs and guards\n", request.path,
      ids[0]);
  for (const Compile& compile : bundle.compiles)
    if (compile.graph && compile.graph->json) {
      say("      ./lathe explain {}/{}     what Lathe makes of it\n", request.path,
          *compile.graph->json);
      break;
    }
  return Ok{};
}

Status show_graph(const BundleFiles& files, const Bundle& bundle, const BundleRequest& request) {
  const Compile* compile = bundle.find_graph(request.graph);
  if (compile == nullptr) {
    const std::string near = nearest(request.graph, bundle.graph_ids());
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("'{}' has no graph '{}' among {}{}", request.path, request.graph,
                            cut(fmt::format("{}", fmt::join(bundle.graph_ids(), ", ")), 200),
                            near.empty() ? "" : fmt::format("; did you mean '{}'?", near))};
  }
  const bundle::CapturedGraph& graph = *compile->graph;
  say("graph {}   {}, {}\n", graph.id, frame_text(bundle.find_frame(compile->frame)),
      plural(graph.ops, "op"));
  Table inputs({Align::left, Align::left, Align::left});
  for (const bundle::Input& input : graph.inputs)
    inputs.add({input.name, input.source, input.is_state ? "weight or buffer" : ""});
  if (!graph.inputs.empty()) say("{}", inputs.str(2));
  if (graph.python) {
    LATHE_TRY(const FileBytes python, files.read(*graph.python));
    say("\n{}", python.text());
  }
  LATHE_DO(show_guards(files, *compile));
  for (const BreakGroup& group : group_breaks(bundle))
    if (group.ends(graph.id))
      say("\nends at {}: {}\n{}", place_of(group.first->file, group.first->line),
          group.first->reason, code_around(bundle, *group.first));
  if (graph.refused) say("\nno JSON for Lathe: {}\n", *graph.refused);
  if (graph.json)
    say("\nNext: ./lathe explain {}/{}     what Lathe makes of it\n", request.path, *graph.json);
  return Ok{};
}

// The bundle's own documents, which were read and so are JSON.
Status write_json(const BundleFiles& files) {
  std::string text = "{";
  for (const std::string name : {"manifest.json", "breaks.jsonl", "recompiles.jsonl"}) {
    LATHE_TRY(const FileBytes bytes, files.read(name));
    std::string body(bytes.text());
    while (!body.empty() && body.back() == '\n') body.pop_back();
    const std::string key = name.substr(0, name.find('.'));
    if (name != bundle::kManifest) {
      for (size_t at = 0; (at = body.find('\n', at)) != std::string::npos; at += 2)
        body.insert(at, ",");
      body = "[" + body + "]";
    }
    text += fmt::format("{}\"{}\":{}", text.size() > 1 ? "," : "", key, body);
  }
  write_out(text + "}\n");
  return Ok{};
}

}  // namespace

int show_bundle(const BundleRequest& request) {
  LocTable locs;
  const Result<BundleFiles> files = BundleFiles::open(request.path);
  if (!files.ok()) return report(files.error(), locs);
  const Result<Bundle> bundle = bundle::read(*files, locs);
  if (!bundle.ok()) return report(bundle.error(), locs);
  Status shown = Ok{};
  if (request.json)
    shown = write_json(*files);
  else if (!request.graph.empty())
    shown = show_graph(*files, *bundle, request);
  else
    shown = show_all(*files, *bundle, request);
  return shown.ok() ? kHeld : report(shown.error(), locs);
}

}  // namespace lathe
