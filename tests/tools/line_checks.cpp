// `check` directives over lines, and a line diff.
#include "tests/tools/line_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace lathe::file_test {
namespace {

// Runs of white space as one blank, none at the ends.
std::string squeeze(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\t';
    if (!is_space) out += c;
    if (is_space && !out.empty() && out.back() != ' ') out += ' ';
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Walks the output's lines from match to match.
class Matcher {
 public:
  explicit Matcher(std::string_view output) {
    for (const std::string& line : split_lines(output)) lines_.push_back(squeeze(line));
  }

  // "" when the directive holds, else why not. Moves to the match.
  std::string match(const Check& check) {
    using Kind = Check::Kind;
    const std::string text = squeeze(check.text);
    if (check.kind == Kind::never) {
      forbidden_.push_back(check);
      return "";
    }
    const size_t previous = next_;
    size_t found = std::string::npos;
    if (check.kind == Kind::same) {
      if (next_ == 0) return "no match stands before it";
      found = lines_[next_ - 1].find(text, column_);
      if (found == std::string::npos) return "not further right in: " + lines_[next_ - 1];
    } else {
      while (next_ < lines_.size() && (found = lines_[next_].find(text)) == std::string::npos) {
        if (check.kind == Kind::next && next_ == previous) break;
        ++next_;
      }
      if (next_ == lines_.size()) return "no line has it after the last match";
      if (found == std::string::npos) return "the next line is: " + lines_[next_];
      ++next_;
    }
    column_ = found + text.size();
    return check_forbidden(previous, next_ == 0 ? 0 : next_ - 1);
  }

  std::string finish() { return check_forbidden(next_, lines_.size()); }

 private:
  // No pending check-not may match in lines [begin, end).
  std::string check_forbidden(size_t begin, size_t end) {
    for (const Check& check : forbidden_) {
      for (size_t i = begin; i < end; ++i) {
        if (lines_[i].find(squeeze(check.text)) == std::string::npos) continue;
        return fmt::format("'check-not: {}' of line {} is in: {}", check.text, check.line,
                           lines_[i]);
      }
    }
    forbidden_.clear();
    return "";
  }

  std::vector<std::string> lines_;
  std::vector<Check> forbidden_;
  size_t next_ = 0;    // the line after the last match
  size_t column_ = 0;  // where the last match ended
};

}  // namespace

void check_lines(const std::vector<Check>& checks, std::string_view output, std::string_view file,
                 std::vector<std::string>& failures) {
  Matcher matcher(output);
  for (const Check& check : checks) {
    const std::string why = matcher.match(check);
    if (why.empty()) continue;
    failures.push_back(fmt::format("{}:{}: check failed: '{}': {}\nin the output:\n{}", file,
                                   check.line, check.text, why, output));
    return;
  }
  const std::string why = matcher.finish();
  if (!why.empty()) {
    failures.push_back(fmt::format("{}: {}\nin the output:\n{}", file, why, output));
  }
}

std::string line_diff(std::string_view a, std::string_view b) {
  const std::vector<std::string> left = split_lines(a);
  const std::vector<std::string> right = split_lines(b);
  // common[i][j]: length of the longest common subsequence of left[i:] and right[j:].
  std::vector<std::vector<size_t>> common(left.size() + 1,
                                          std::vector<size_t>(right.size() + 1, 0));
  for (size_t i = left.size(); i-- > 0;) {
    for (size_t j = right.size(); j-- > 0;) {
      common[i][j] = left[i] == right[j] ? common[i + 1][j + 1] + 1
                                         : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::string diff;
  size_t i = 0;
  size_t j = 0;
  while (i < left.size() || j < right.size()) {
    if (i < left.size() && j < right.size() && left[i] == right[j]) {
      diff += "  " + left[i++] + "\n";
      ++j;
    } else if (j == right.size() || (i < left.size() && common[i + 1][j] >= common[i][j + 1])) {
      diff += "- " + left[i++] + "\n";
    } else {
      diff += "+ " + right[j++] + "\n";
    }
  }
  return diff;
}

}  // namespace lathe::file_test
