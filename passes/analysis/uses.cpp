// Use counts, in one walk.
#include "passes/analysis/uses.h"

namespace lathe {

UseCounts::UseCounts(const Graph& graph) {
  for (const auto& node : graph.nodes)
    for (Value operand : node->operands) add(operand);
  for (Value output : graph.outputs) add(output);
  for (const Mutation& mutation : graph.mutations) add(mutation.value);
}

void UseCounts::add(Value value) {
  if (!value) return;
  std::vector<int>& counts = counts_[value.node];
  counts.resize(value.node->types.size());
  ++counts[static_cast<size_t>(value.index)];
}

int UseCounts::operator[](Value value) const {
  auto found = counts_.find(value.node);
  return found == counts_.end() ? 0 : found->second[static_cast<size_t>(value.index)];
}

}  // namespace lathe
