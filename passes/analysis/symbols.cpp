// Symbols of types and attributes.
#include "passes/analysis/symbols.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "passes/analysis/rewrite.h"

namespace lathe {

bool has_symbols(const Node& node) {
  std::vector<std::string> names;
  collect_symbols(node, names);
  return !names.empty();
}

std::map<std::string, DimRange> ranges_of_symbols(Module& module) {
  std::vector<std::string> names;
  for (const Graph* graph : all_graphs(module)) {
    for (const auto& param : graph->params) collect_symbols(*param, names);
    for (const auto& node : graph->nodes) collect_symbols(*node, names);
  }
  std::vector<std::string> guarded;
  for (const Guard& guard : module.guards) {
    guard.left.collect_symbols(guarded);
    guard.right.collect_symbols(guarded);
  }
  for (std::string& name : guarded)
    if (module.dims.contains(name)) names.push_back(std::move(name));
  std::map<std::string, DimRange> ranges;
  for (const std::string& name : names) {
    const auto known = module.dims.find(name);
    DimRange range = known == module.dims.end() ? DimRange{} : known->second;
    range.min = std::max<int64_t>(range.min.value_or(0), 0);
    ranges.emplace(name, range);
  }
  return ranges;
}

std::map<std::string, int64_t> hints_of_symbols(Module& module) {
  constexpr int64_t kUsual = 64;
  std::map<std::string, int64_t> hints;
  for (const auto& [name, range] : ranges_of_symbols(module)) {
    const auto known = module.hints.find(name);
    hints[name] = known != module.hints.end()
                      ? known->second
                      : std::max(*range.min, std::min(range.max.value_or(kUsual), kUsual));
  }
  return hints;
}

std::vector<std::string> symbols_of(Module& module) {
  std::vector<std::string> names;
  const std::vector<Graph*> graphs = all_graphs(module);
  for (const Graph* graph : graphs)
    for (const auto& param : graph->params) collect_symbols(*param, names);
  for (const auto& [name, range] : module.dims) {
    (void)range;
    Dim::symbol(name).collect_symbols(names);
  }
  for (const Graph* graph : graphs)
    for (const auto& node : graph->nodes) collect_symbols(*node, names);
  return names;
}

Diag unknown_symbol(const std::string& pass, const std::string& name,
                    const std::vector<std::string>& symbols) {
  const std::string near = nearest(name, symbols);
  return {code::kBadValue, Loc::unknown(),
          fmt::format("{}: the graph has no symbol '{}'{}", pass, name,
                      near.empty() ? "" : "; did you mean '" + near + "'?")};
}

}  // namespace lathe
