// Activations that exporters or models spell out: gelu in both forms, silu, relu as a clamp.
#include <cmath>

#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/product.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

// 1 + f(u) among the factors: takes it out and returns f's node; null when there is none.
const Node* take_one_plus(std::vector<Value>& factors, std::string_view f, const UseCounts& uses) {
  for (Value factor : factors) {
    Sum sum = flatten_sum(factor, uses);
    if (sum.scalar != 1 || sum.terms.size() != 1 || !is_op(sum.terms[0], f)) continue;
    if (uses[factor] != 1 || uses[sum.terms[0]] != 1) continue;
    take(factors, factor);
    return sum.terms[0].node;
  }
  return nullptr;
}

// x * 0.5 * (1 + erf(x / sqrt(2))) = gelu(x)
Value recognize_gelu_erf(Builder& b, const Node& head, RuleContext& context) {
  Product product = flatten_product({const_cast<Node*>(&head), 0}, context.uses);
  const Node* erf = take_one_plus(product.factors, "erf", context.uses);
  if (erf == nullptr || product.factors.size() != 1 || !is_near(product.scalar, 0.5)) return {};
  Value x = product.factors[0];
  Product inner = flatten_product(erf->operands[0], context.uses);
  if (inner.factors.size() != 1 || inner.factors[0] != x || !is_near(inner.scalar, M_SQRT1_2))
    return {};
  return b.call("gelu", {x}, {{"approximate", std::string("none")}});
}

// Whether `value` is 0.044715 * x^count.
bool is_power(Value value, Value x, size_t count, RuleContext& context) {
  Product power = flatten_product(value, context.uses);
  bool is_of_x = power.factors.size() == count && is_near(power.scalar, 0.044715);
  for (size_t i = 0; i < count && is_of_x; ++i) is_of_x = take(power.factors, x);
  return is_of_x;
}

// x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) = gelu(x, tanh), also with the inner x
// before the bracket.
Value recognize_gelu_tanh(Builder& b, const Node& head, RuleContext& context) {
  Product product = flatten_product({const_cast<Node*>(&head), 0}, context.uses);
  const Node* tanh = take_one_plus(product.factors, "tanh", context.uses);
  if (tanh == nullptr || product.factors.size() != 1 || !is_near(product.scalar, 0.5)) return {};
  Value x = product.factors[0];
  Product argument = flatten_product(tanh->operands[0], context.uses);
  if (!is_near(argument.scalar, std::sqrt(2 / M_PI))) return {};
  const bool is_factored = argument.factors.size() == 2 && take(argument.factors, x);
  if (argument.factors.size() != 1) return {};
  Sum sum = flatten_sum(argument.factors[0], context.uses);
  const bool has_first =
      is_factored ? is_near(sum.scalar, 1) : sum.scalar == 0 && take(sum.terms, x);
  if (!has_first || sum.terms.size() != 1 ||
      !is_power(sum.terms[0], x, is_factored ? 2 : 3, context))
    return {};
  return b.call("gelu", {x}, {{"approximate", std::string("tanh")}});
}

// x * sigmoid(x) = silu(x)
Value recognize_silu(Builder& b, const Node& head, RuleContext& context) {
  for (size_t i = 0; i < 2; ++i) {
    Value x = head.operands[i], gate = head.operands[1 - i];
    if (!is_op(gate, "sigmoid") || gate.node->operands[0] != x) continue;
    if (context.uses[gate] == 1) return b.call("silu", {x});
    context.refusals.push_back(
        {head.loc, "'" + head.name + "' is not silu: its sigmoid is read elsewhere as well"});
  }
  return {};
}

// clamp(x, 0, none) = relu(x)
Value recognize_relu(Builder& b, const Node& head, RuleContext&) {
  if (head.operands[2] || splat_value(head.operands[1]) != 0.0) return {};
  if (head.operands[0].type() != head.types[0]) return {};
  return b.call("relu", {head.operands[0]});
}

}  // namespace

std::vector<Rule> activation_rules() {
  return {
      {"gelu_erf", "mul", "x * 0.5 * (1 + erf(x / sqrt(2))) = gelu(x)", recognize_gelu_erf},
      {"gelu_tanh", "mul",
       "x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) = gelu(x, tanh)",
       recognize_gelu_tanh},
      {"silu", "mul", "x * sigmoid(x) = silu(x)", recognize_silu},
      {"relu", "clamp", "clamp(x, 0, none) = relu(x)", recognize_relu},
  };
}

}  // namespace lathe
