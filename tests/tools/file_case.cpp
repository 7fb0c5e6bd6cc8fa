// Reads .lathe test files: comments into expectations, `=>` into an expected module.
#include "tests/tools/file_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "ir/support/diag_codes.h"

namespace lathe::file_test {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "word rest" -> rest, when the text begins with the word.
bool take_word(std::string_view& text, std::string_view word) {
  if (text.substr(0, word.size()) != word) return false;
  text.remove_prefix(word.size());
  return true;
}

bool is_separator(std::string_view line) {
  line = trim(line);
  return line.size() >= 5 && line.substr(0, 3) == "// " &&
         line.find_first_not_of('-', 3) == std::string_view::npos;
}

// Reads the directives of one file, line by line, into cases.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Result<std::vector<FileCase>> read(std::string_view text) {
    const std::vector<std::string> lines = split_lines(text);
    begin_case(1);
    for (size_t i = 0; i < lines.size(); ++i) {
      number_ = static_cast<int>(i) + 1;
      if (is_separator(lines[i])) {
        cases_.push_back(std::move(current_));
        begin_case(number_ + 1);
      } else {
        LATHE_DO(read_line(lines[i]));
      }
    }
    cases_.push_back(std::move(current_));
    if (cases_.front().action.empty()) {
      number_ = 1;
      return error("a test file begins with '// test: <parse, print or a pipeline>'", lines[0]);
    }
    for (size_t i = 1; i < cases_.size(); ++i) {
      if (cases_[i].action.empty()) cases_[i].action = cases_[i - 1].action;
    }
    return std::move(cases_);
  }

 private:
  void begin_case(int line) {
    current_ = FileCase();
    current_.line = line;
    current_.input = std::string(static_cast<size_t>(line - 1), '\n');
  }

  Diag error(std::string message, std::string_view line) const {
    return Diag{code::kSyntax, Loc::unknown(),
                fmt::format("{}:{}: {}: '{}'", file_, number_, message, trim(line))};
  }

  Status read_line(const std::string& line) {
    if (trim(line) == "=>" && !current_.has_expected) {
      current_.has_expected = true;
      current_.expected = std::string(static_cast<size_t>(number_), '\n');
      current_.expected_begin = current_.expected_end = number_ + 1;
      return Ok{};
    }
    std::string& text = current_.has_expected ? current_.expected : current_.input;
    text += line + "\n";
    const bool is_code = !trim(line).empty() && trim(line).substr(0, 2) != "//";
    if (current_.has_expected && is_code) current_.expected_end = number_ + 1;
    const size_t comment = line.rfind("// ");
    if (comment == std::string::npos) return Ok{};
    return read_directive(trim(std::string_view(line).substr(comment + 3)), line);
  }

  Status read_directive(std::string_view text, std::string_view line) {
    using Kind = Check::Kind;
    static constexpr std::pair<std::string_view, Kind> kChecks[] = {
        {"check:", Kind::anywhere},
        {"check-next:", Kind::next},
        {"check-same:", Kind::same},
        {"check-not:", Kind::never},
    };
    for (const auto& [word, kind] : kChecks) {
      if (!take_word(text, word)) continue;
      current_.checks.push_back({kind, std::string(trim(text)), number_});
      return Ok{};
    }
    if (take_word(text, "test:")) {
      current_.action = trim(text);
    } else if (take_word(text, "target:")) {
      current_.target = trim(text);
    } else if (take_word(text, "numerics:")) {
      const auto name = std::find(std::begin(kNumericsNames), std::end(kNumericsNames), trim(text));
      if (name == std::end(kNumericsNames))
        return error("numerics are 'default', 'ieee' or 'strict'", line);
      current_.numerics = static_cast<Numerics>(name - std::begin(kNumericsNames));
    } else if (take_word(text, "force:")) {
      Result<Override> decision = parse_override(trim(text), Loc::unknown());
      if (!decision.ok()) return error(decision.error().message, line);
      current_.force.push_back(*std::move(decision));
    } else if (take_word(text, "error[")) {
      return read_diag("error", text, line);
    } else if (take_word(text, "note@") || text.substr(0, 5) == "note:") {
      if (text.substr(0, 5) == "note:") text.remove_prefix(4);
      return read_diag("note", text, line);
    } else if (take_word(text, "refuses@") || text.substr(0, 8) == "refuses:") {
      if (text.substr(0, 8) == "refuses:") text.remove_prefix(7);
      return read_diag("refuses", text, line);
    } else if (take_word(text, "check") || take_word(text, "error:")) {
      return error("this is no directive (tests/tools/file_case.h lists them)", line);
    }
    return Ok{};
  }

  // After "error[": code]@-1: text; after "note@": -1: text.
  Status read_diag(std::string severity, std::string_view text, std::string_view line) {
    ExpectedDiag diag{std::move(severity), "", "", number_, number_};
    if (diag.severity == "error") {
      const size_t close = text.find(']');
      if (close == std::string_view::npos) return error("expected ']' after the code", line);
      diag.code = text.substr(0, close);
      text.remove_prefix(close + 1);
      take_word(text, "@");
    }
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return error("expected ':' before the message", line);
    std::string_view offset = text.substr(0, colon);
    if (!offset.empty() && offset.front() == '+') offset.remove_prefix(1);
    if (!offset.empty()) {
      int lines = 0;
      const auto [end, status] = std::from_chars(offset.begin(), offset.end(), lines);
      if (status != std::errc() || end != offset.end()) {
        return error("expected a number of lines between '@' and ':'", line);
      }
      diag.line += lines;
    }
    diag.text = trim(text.substr(colon + 1));
    current_.diags.push_back(std::move(diag));
    return Ok{};
  }

  std::string_view file_;
  int number_ = 1;
  FileCase current_;
  std::vector<FileCase> cases_;
};

}  // namespace

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

Result<std::vector<FileCase>> read_cases(std::string_view text, std::string_view file) {
  if (text.empty()) return Diag{code::kSyntax, Loc::unknown(), fmt::format("{} is empty", file)};
  return Reader(file).read(text);
}

}  // namespace lathe::file_test
