// Reading overrides: see override.h.
#include "passes/choices/override.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr size_t kShown = 60;  // characters of a person's text in a message

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") + 1 - first);
}

// "9x3".
std::vector<int64_t> read_tile(std::string_view text) {
  constexpr int64_t kMost = 1024;
  std::vector<int64_t> tile;
  while (!text.empty()) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 1 || value > kMost) return {};
    tile.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != 'x' || text.size() == 1) return {};
    text.remove_prefix(1);
  }
  return tile;
}

struct Syntax {
  std::string_view word;
  Override::What what;
  const char* spelling;
  const char* why_unheeded;
};
constexpr Syntax kSyntaxes[] = {
    {"kernel", Override::What::kernel, "kernel NODE = KIND", "the pipeline has no choose_kernels"},
    {"tile", Override::What::tile, "tile NODE = 9x3", "the pipeline has no choose_kernels"},
    {"keep", Override::What::keep, "keep NODE",
     "nothing would have joined it, or the pipeline has neither fuse_epilogue nor fuse_pointwise"},
};

}  // namespace

std::vector<Override> overrides_for(const std::string& node, const std::string& kernel,
                                    const std::vector<int64_t>& tile) {
  std::vector<Override> lines;
  lines.push_back({.what = Override::What::kernel,
                   .node = node,
                   .kernel = kernel,
                   .text = fmt::format("kernel {} = {}", node, kernel)});
  if (!tile.empty())
    lines.push_back({.what = Override::What::tile,
                     .node = node,
                     .tile = tile,
                     .text = fmt::format("tile {} = {}", node, fmt::join(tile, "x"))});
  return lines;
}

const char* why_unheeded(Override::What what) {
  for (const Syntax& each : kSyntaxes)
    if (each.what == what) return each.why_unheeded;
  return "";
}

Result<Override> parse_override(std::string_view text, Loc loc) {
  const std::string_view whole = trim(text);
  const std::string_view word = whole.substr(0, whole.find_first_of(" \t"));
  const auto bad = [&](const std::string& expected) {
    return Diag{code::kBadValue, loc,
                fmt::format("'{}' is no choice: expected {}", whole.substr(0, kShown), expected)};
  };
  const Syntax* syntax = nullptr;
  std::vector<std::string> words;
  for (const Syntax& each : kSyntaxes) {
    words.emplace_back(each.word);
    if (each.word == word) syntax = &each;
  }
  if (syntax == nullptr) {
    const std::string near = nearest(word, words);
    return bad(fmt::format("'{}', '{}' or '{}'{}", kSyntaxes[0].spelling, kSyntaxes[1].spelling,
                           kSyntaxes[2].spelling,
                           near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
  const std::string_view rest = trim(whole.substr(word.size()));
  const size_t equals = rest.find('=');
  std::string_view node = trim(rest.substr(0, equals));
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : trim(rest.substr(equals + 1));
  if (!node.empty() && node.front() == '%') node.remove_prefix(1);
  const bool wants_value = syntax->what != Override::What::keep;
  if (node.empty() || wants_value == value.empty() ||
      (!wants_value && equals != std::string_view::npos))
    return bad(fmt::format("'{}'", syntax->spelling));
  Override result{.what = syntax->what, .node = std::string(node), .loc = loc};
  result.text = std::string(whole);
  if (syntax->what == Override::What::kernel) result.kernel = std::string(value);
  if (syntax->what == Override::What::tile) {
    result.tile = read_tile(value);
    if (result.tile.size() != 2) return bad("rows and vectors, such as 9x3, each 1 to 1024");
  }
  return result;
}

}  // namespace lathe
