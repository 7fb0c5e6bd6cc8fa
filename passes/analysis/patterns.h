// Small questions about nodes that several passes ask when they look for a pattern.
#pragma once
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/graph/node.h"

namespace lathe {

// `value` is the first result of a node of op `op`.
bool is_op(Value value, std::string_view op);

// The operand that the row calls `name`; null when the row has none or the node omits it.
Value named_operand(const Node& node, std::string_view name);

// A constant node that refers to a weight of the module, whose bytes may be absent.
bool is_weight(const Node& node);
// A constant node that holds its elements.
bool is_literal(const Node& node);
// What is computed from weights and literals alone, so that it can be computed once, when weights
// are bound.
class ConstantValues {
 public:
  explicit ConstantValues(const Graph& graph);
  bool contains(Value value) const;

 private:
  std::unordered_set<const Node*> known_;
};

// A view, copy or cast whose result is its operand, element by element, in the same type.
bool is_identity(const Node& node);

// The element of a literal that has the same one everywhere, seen through views; nullopt otherwise.
std::optional<double> splat_value(Value value);

// The operand of a binary node `op` that is not a splat, and the splat's value; commuted if `op`
// commutes. nullopt when neither or both are.
struct ScalarOperand {
  Value tensor;
  double scalar;
};
std::optional<ScalarOperand> match_scalar(Value value, std::string_view op);

// An empty list of dims means all, negative ones count from the end; sorted.
std::vector<int64_t> normalized_dims(const std::vector<int64_t>& dims, int rank);

}  // namespace lathe
