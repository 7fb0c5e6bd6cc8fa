// Norms that models or exporters spell out: layer_norm and rms_norm over the last dims.
#include <cmath>

#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/product.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

// mean(x) over the last `count` dims, kept; count is 0 when `value` is not that.
struct RowMean {
  Value of;
  int count = 0;
};
RowMean row_mean(Value value) {
  if (!is_op(value, "mean") || !value.node->bool_attr("keepdim")) return {};
  Value x = value.node->operands[0];
  int rank = x.type().rank();
  std::vector<int64_t> dims = normalized_dims(value.node->ints_attr("dim"), rank);
  int count = static_cast<int>(dims.size());
  for (int i = 0; i < count; ++i)
    if (dims[static_cast<size_t>(i)] != rank - count + i) return {};
  return {x, count};
}

// 1 / sqrt(v + eps), in one of its spellings; v is null when `value` is not that.
struct InverseRoot {
  Value of;
  double eps = 0;
};
InverseRoot inverse_root(Value value, const UseCounts& uses) {
  Value root;
  if (is_op(value, "rsqrt")) {
    root = value.node->operands[0];
  } else if (is_op(value, "pow") && splat_value(value.node->operands[1]) == -0.5) {
    root = value.node->operands[0];
  } else if (is_op(value, "reciprocal") && is_op(value.node->operands[0], "sqrt")) {
    root = value.node->operands[0].node->operands[0];
  }
  if (!root) return {};
  Sum sum = flatten_sum(root, uses);
  if (sum.terms.size() != 1 || sum.scalar < 0) return {};
  return {sum.terms[0], sum.scalar};
}

// value = x * y with y an inverse root, or x / sqrt(v + eps); x is null otherwise.
struct Normalized {
  Value x;
  InverseRoot root;
};
Normalized match_normalized(Value value, const UseCounts& uses) {
  if (is_op(value, "mul")) {
    for (size_t i = 0; i < 2; ++i) {
      InverseRoot root = inverse_root(value.node->operands[1 - i], uses);
      if (root.of) return {value.node->operands[i], root};
    }
  }
  if (is_op(value, "div") && is_op(value.node->operands[1], "sqrt")) {
    Sum sum = flatten_sum(value.node->operands[1].node->operands[0], uses);
    if (sum.terms.size() == 1 && sum.scalar >= 0)
      return {value.node->operands[0], {sum.terms[0], sum.scalar}};
  }
  return {};
}

// y when value is y * y.
Value square_root_of(Value value) {
  if (is_op(value, "square")) return value.node->operands[0];
  if (is_op(value, "pow") && splat_value(value.node->operands[1]) == 2.0)
    return value.node->operands[0];
  if (is_op(value, "mul") && value.node->operands[0] == value.node->operands[1])
    return value.node->operands[0];
  return {};
}

// x when value is x - mean(x).
struct Centered {
  Value x;
  int count = 0;
};
Centered match_centered(Value value) {
  if (!is_op(value, "sub")) return {};
  RowMean mean = row_mean(value.node->operands[1]);
  if (mean.count == 0 || mean.of != value.node->operands[0]) return {};
  return {mean.of, mean.count};
}

Shape last_dims(const TensorType& type, int count) {
  return {type.shape.end() - count, type.shape.end()};
}

// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) = layer_norm(x)
Value recognize_layer_norm(Builder& b, const Node& head, RuleContext& context) {
  Normalized normalized = match_normalized({const_cast<Node*>(&head), 0}, context.uses);
  if (!normalized.x) return {};
  Centered centered = match_centered(normalized.x);
  RowMean variance = row_mean(normalized.root.of);
  if (centered.count == 0 || variance.count != centered.count) return {};
  Value deviation = square_root_of(variance.of);
  if (!deviation) return {};
  Centered again = match_centered(deviation);  // the same value, or computed once more
  if (again.x != centered.x || again.count != centered.count) return {};
  return b.call("layer_norm", {centered.x, {}, {}},
                {{"normalized_shape", last_dims(centered.x.type(), centered.count)},
                 {"eps", normalized.root.eps}});
}

// x / sqrt(mean(x^2) + eps) = rms_norm(x)
Value recognize_rms_norm(Builder& b, const Node& head, RuleContext& context) {
  Normalized normalized = match_normalized({const_cast<Node*>(&head), 0}, context.uses);
  if (!normalized.x) return {};
  RowMean square = row_mean(normalized.root.of);
  if (square.count == 0 || square_root_of(square.of) != normalized.x) return {};
  return b.call("rms_norm", {normalized.x, {}},
                {{"normalized_shape", last_dims(normalized.x.type(), square.count)},
                 {"eps", normalized.root.eps}});
}

// A norm without weight, of which `head` reads only this: its node, and head's other operand.
struct Affine {
  const Node* norm = nullptr;
  Value other;
};
Affine match_affine(const Node& head, size_t missing, const UseCounts& uses) {
  for (size_t i = 0; i < 2; ++i) {
    Value norm = head.operands[i];
    if (!is_op(norm, "layer_norm") && !is_op(norm, "rms_norm")) continue;
    const Node& node = *norm.node;
    if (node.operands.size() <= missing || node.operands[missing] || uses[norm] != 1) continue;
    Value other = head.operands[1 - i];
    if (other.type().shape == node.dims_attr("normalized_shape")) return {&node, other};
  }
  return {};
}

Value with_operand(Builder& b, const Affine& affine, size_t position) {
  std::vector<Value> operands = affine.norm->operands;
  operands[position] = affine.other;
  NamedAttrs attrs;
  for (size_t i = 0; i < affine.norm->attrs.size(); ++i)
    attrs.push_back({affine.norm->op->attrs[i].name, affine.norm->attrs[i]});
  return b.call(affine.norm->op->name, operands, attrs);
}

// norm(x) * w = norm(x, w), but not behind a bias, which it would multiply as well.
Value absorb_weight(Builder& b, const Node& head, RuleContext& context) {
  Affine affine = match_affine(head, 1, context.uses);
  if (affine.norm == nullptr) return {};
  const std::vector<Value>& operands = affine.norm->operands;
  const bool has_bias = operands.size() > 2 && operands[2];
  return has_bias ? Value() : with_operand(b, affine, 1);
}

// layer_norm(x, w) + c = layer_norm(x, w, c)
Value absorb_bias(Builder& b, const Node& head, RuleContext& context) {
  Affine affine = match_affine(head, 2, context.uses);
  if (affine.norm == nullptr || !affine.norm->operands[1]) return {};
  return with_operand(b, affine, 2);
}

}  // namespace

std::vector<Rule> norm_rules() {
  const char* layer_norm = "(x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) = layer_norm(x)";
  const char* rms_norm = "x / sqrt(mean(x^2) + eps) = rms_norm(x)";
  return {
      {"layer_norm", "mul", layer_norm, recognize_layer_norm},
      {"layer_norm", "div", layer_norm, recognize_layer_norm},
      {"rms_norm", "mul", rms_norm, recognize_rms_norm},
      {"rms_norm", "div", rms_norm, recognize_rms_norm},
      {"norm_weight", "mul", "norm(x) * w = norm(x, w)", absorb_weight},
      {"norm_bias", "add", "layer_norm(x, w) + c = layer_norm(x, w, c)", absorb_bias},
  };
}

}  // namespace lathe
