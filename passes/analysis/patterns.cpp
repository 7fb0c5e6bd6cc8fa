// Answers to small questions about nodes.
#include "passes/analysis/patterns.h"

#include <algorithm>
#include <cmath>

#include "ir/graph/op_def.h"
#include "passes/analysis/symbols.h"

namespace lathe {
namespace {

std::optional<double> literal_splat(const Node& node) {
  const auto* values = std::get_if<std::vector<double>>(&node.attr("value"));
  if (values == nullptr || values->empty()) return std::nullopt;
  const double first = values->front();
  for (double value : *values) {
    const bool is_same = value == first && std::signbit(value) == std::signbit(first);
    if (!is_same && !(std::isnan(value) && std::isnan(first))) return std::nullopt;
  }
  return first;
}

}  // namespace

bool is_op(Value value, std::string_view op) {
  return value && value.index == 0 && value.node->op->name == op;
}

Value named_operand(const Node& node, std::string_view name) {
  const auto& specs = node.op->operands;
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].name == name) return node.operand(static_cast<int>(i));
  return {};
}

bool is_weight(const Node& node) { return node.op->name == kConstantOp && !node.is_none("name"); }

bool is_literal(const Node& node) { return node.op->name == kConstantOp && node.is_none("name"); }

ConstantValues::ConstantValues(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    const Traits& traits = node->op->traits;
    if (traits.has_effects || traits.is_random || node->in_place) continue;
    if (has_symbols(*node)) continue;  // their values come with sizes, weights come before
    bool is_constant = !node->operands.empty() || traits.op_class == OpClass::source ||
                       node->op->name == "constant";
    for (Value operand : node->operands)
      is_constant = is_constant && (!operand || known_.count(operand.node) != 0);
    if (is_constant) known_.insert(node.get());
  }
}

bool ConstantValues::contains(Value value) const { return known_.count(value.node) != 0; }

bool is_identity(const Node& node) {
  if (node.operands.empty() || node.types.size() != 1 || node.in_place) return false;
  if (node.operands[0].type() != node.types[0]) return false;
  const std::string& op = node.op->name;
  if (op == "permute") {
    std::vector<int64_t> dims = node.ints_attr("dims");
    for (int64_t& dim : dims) dim = normalize_dim(dim, static_cast<int>(dims.size())).value_or(0);
    return std::is_sorted(dims.begin(), dims.end());
  }
  if (op == "pad") {
    const std::vector<Dim> widths = node.dims_attr("pad");
    return std::all_of(widths.begin(), widths.end(),
                       [](const Dim& width) { return width == Dim(0); });
  }
  if (op == "slice") return node.int_attr("step", 1) == 1;
  return op == "reshape" || op == "expand" || op == "cast" || op == "squeeze" || op == "alias" ||
         op == "dropout" || op == "clone" || op == "contiguous";
}

std::optional<double> splat_value(Value value) {
  for (;;) {
    if (!value) return std::nullopt;
    const Node& node = *value.node;
    if (is_literal(node)) return literal_splat(node);
    if (node.op->name == "full") return node.float_attr("fill_value");
    const Traits& traits = node.op->traits;
    const bool is_seen_through = traits.op_class == OpClass::view && traits.view != ViewKind::pad &&
                                 node.operands.size() == 1 && !node.in_place;
    if (!is_seen_through) return std::nullopt;
    value = node.operands[0];
  }
}

std::optional<ScalarOperand> match_scalar(Value value, std::string_view op) {
  if (!is_op(value, op) || value.node->operands.size() != 2) return std::nullopt;
  const Node& node = *value.node;
  auto left = splat_value(node.operands[0]);
  auto right = splat_value(node.operands[1]);
  if (right && !left) return ScalarOperand{node.operands[0], *right};
  if (left && !right && node.op->traits.is_commutative)
    return ScalarOperand{node.operands[1], *left};
  return std::nullopt;
}

std::vector<int64_t> normalized_dims(const std::vector<int64_t>& dims, int rank) {
  std::vector<int64_t> result;
  for (int64_t dim : dims) result.push_back(normalize_dim(dim, rank).value_or(0));
  if (dims.empty())
    for (int i = 0; i < rank; ++i) result.push_back(i);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace lathe
