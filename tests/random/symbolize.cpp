// Symbols for sizes, and sizes for symbols (see symbolize.h).
#include "tests/random/symbolize.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/random/draw.h"
#include "tests/random/rebuild.h"

namespace lathe::random_graphs {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of a value, at sizes that are drawn
constexpr size_t kNumSizes = 5;

// Sizes that an exporter would make symbols: 0 and 1 stay numbers.
std::vector<int64_t> candidates(const Case& test) {
  std::set<int64_t> found;
  for (const auto& param : test.module.main().params)
    for (const Dim& dim : param->types[0].shape)
      if (dim.is_const() && dim.value() > 1) found.insert(dim.value());
  return {found.begin(), found.end()};
}

bool has_symbol(const Case& test, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& param : test.module.main().params)
    for (const Dim& dim : param->types[0].shape) dim.collect_symbols(names);
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<Case> with_symbol(const Case& from, int64_t size, Draw& draw) {
  const std::string name = fmt::format("s{}", from.module.dims.size());
  Case named = copy(from);
  const std::vector<DimRange> ranges = {{0, std::nullopt}, {1, 4 * size}, {2, std::nullopt}};
  named.module.dims[name] = draw.one_of(ranges);
  named.module.hints[name] = size;
  const Dim symbol = Dim::symbol(name);
  std::optional<Case> made =
      rebuild(named, {.dim = [&](const Dim& dim) { return dim == Dim(size) ? symbol : dim; }});
  if (!made || !has_symbol(*made, name)) return std::nullopt;
  return made;
}

bool is_small(const Case& test, const Sizes& sizes) {
  const auto fits = [&](const Node& node) {
    for (const TensorType& type : node.types) {
      const auto count = type.num_elements().evaluate(sizes);
      if (!count.ok() || *count > kMostElements) return false;
    }
    return true;
  };
  const Graph& graph = test.module.main();
  return std::all_of(graph.params.begin(), graph.params.end(),
                     [&](const auto& node) { return fits(*node); }) &&
         std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& node) { return fits(*node); });
}

Sizes draw_sizes(const Case& test, Draw& draw) {
  Sizes sizes;
  for (const auto& [name, range] : test.module.dims) {
    const int64_t hint = test.module.hints.at(name);
    const int64_t size = draw.one_of<int64_t>(
        {hint, hint + 1, hint - 1, 2 * hint, 1, 2, 3, draw.between(1, 9), draw.between(10, 40), 0});
    sizes[name] = std::clamp(size, *range.min, range.max.value_or(INT64_MAX));
  }
  return sizes;
}

}  // namespace

std::optional<Case> symbolize(const Case& from, uint64_t seed) {
  Draw draw(seed);
  std::optional<Case> made;
  const size_t wanted = draw.chance(0.4) ? 2 : 1;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const Case& base = made ? *made : from;
    const std::vector<int64_t> sizes = candidates(base);
    if (base.module.dims.size() == wanted || sizes.empty()) break;
    if (std::optional<Case> more = with_symbol(base, draw.one_of(sizes), draw))
      made = std::move(more);
  }
  if (!made) return std::nullopt;
  made->sizes = {made->module.hints};
  for (int attempt = 0; attempt < 20 && made->sizes.size() < kNumSizes; ++attempt) {
    const Sizes sizes = draw_sizes(*made, draw);
    if (is_small(*made, sizes)) made->sizes.push_back(sizes);
  }
  return made;
}

std::optional<Case> at_sizes(const Case& test, const Sizes& sizes) {
  std::map<std::string, Dim> numbers;
  for (const auto& [symbol, size] : sizes) numbers.emplace(symbol, size);
  Edit edit{.dim = [&](const Dim& dim) { return dim.substitute(numbers); }};
  std::optional<Case> made = rebuild(test, edit);
  if (!made) return std::nullopt;
  made->sizes.clear();
  made->module.dims.clear();
  made->module.hints.clear();
  return made;
}

}  // namespace lathe::random_graphs
