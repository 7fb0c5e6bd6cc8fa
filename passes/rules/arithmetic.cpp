// Neutral elements and inverses, only where every bit of the result stays the same: x + 0.0 is not
// x when x is -0.0, but x - 0.0 and x + -0.0 are.
#include <cmath>

#include "ir/graph/op_def.h"
#include "passes/analysis/patterns.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

// The operand that the head equals, when the other one is a splat of `neutral` and the types agree.
Value without(const Node& head, double neutral) {
  auto match = match_scalar({const_cast<Node*>(&head), 0}, head.op->name);
  if (!match || match->scalar != neutral || match->tensor.type() != head.types[0]) return {};
  bool is_same_sign = std::signbit(match->scalar) == std::signbit(neutral);
  return is_same_sign || !is_float(head.types[0].dtype) ? match->tensor : Value();
}

// x + -0.0 = x; integers: x + 0 = x
Value add_zero(Builder&, const Node& head, RuleContext&) { return without(head, -0.0); }

// x - 0.0 = x
Value sub_zero(Builder&, const Node& head, RuleContext&) { return without(head, 0.0); }

// x * 1 = x, x / 1 = x, pow(x, 1) = x
Value by_one(Builder&, const Node& head, RuleContext&) { return without(head, 1.0); }

// x & true = x
Value and_true(Builder&, const Node& head, RuleContext&) {
  return head.types[0].dtype == DType::b8 ? without(head, 1.0) : Value();
}

// -(-x) = x; of bools: not (not x) = x
Value twice(Builder&, const Node& head, RuleContext&) {
  Value inner = head.operands[0];
  if (!is_op(inner, head.op->name) || inner.node->operands[0].type() != head.types[0]) return {};
  return inner.node->operands[0];
}

// where(true, a, b) = a, where(false, a, b) = b, where(c, a, a) = a
Value where_known(Builder&, const Node& head, RuleContext&) {
  auto condition = splat_value(head.operands[0]);
  bool is_one = head.operands[1] == head.operands[2];
  if (!condition && !is_one) return {};
  Value chosen = is_one || *condition != 0 ? head.operands[1] : head.operands[2];
  return chosen.type() == head.types[0] ? chosen : Value();
}

}  // namespace

std::vector<Rule> arithmetic_rules() {
  return {
      {"add_zero", "add", "x + -0.0 = x", add_zero},
      {"sub_zero", "sub", "x - 0.0 = x", sub_zero},
      {"by_one", "mul", "x * 1 = x", by_one},
      {"by_one", "div", "x / 1 = x", by_one},
      {"by_one", "pow", "pow(x, 1) = x", by_one},
      {"and_true", "bitwise_and", "x & true = x", and_true},
      {"and_true", "logical_and", "x and true = x", and_true},
      {"twice", "neg", "-(-x) = x", twice},
      {"twice", "logical_not", "not (not x) = x", twice},
      {"where_known", "where", "where(true, a, b) = a", where_known},
  };
}

}  // namespace lathe
