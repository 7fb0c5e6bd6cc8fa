// Sums, products, extremes, powers and angles of two broadcast operands; quotients: quotient.cpp.
#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/binary_row.h"
#include "ir/op/formula.h"
#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;

// self + alpha * other, or other - alpha * self: the graph has no alpha, so that a + b is one thing
// to every pass.
template <bool kIsReversed>
Result<std::vector<Value>> import_scaled(Builder& builder, const ImportCall& call) {
  LATHE_TRY(Value first, import_tensor(builder, call, kIsReversed ? "other" : "self"));
  LATHE_TRY(Value second, import_tensor(builder, call, kIsReversed ? "self" : "other"));
  const char* op = kIsReversed ? "sub" : call.op->name.c_str();
  LATHE_TRY(const Value alpha, import_tensor(builder, call, "alpha"));
  if (call.float_attr("alpha", 1) == 1 || !first || !second || !alpha)
    return import_node(builder, call, op, {first, second});
  // Scaled in the dtype of the sum, which of halves is rounded once.
  const TensorType types[] = {first.type(), second.type()};
  const DType dtype = promote_operands(types);
  const bool is_wide = is_half(dtype) && !call.in_place;
  const DType wide = is_wide ? compute_dtype(dtype) : dtype;
  if (is_rounded_first(second.type(), dtype)) second = cast({builder, second}, dtype);
  second = cast({builder, second}, wide) * cast({builder, alpha}, wide);
  if (!is_wide) return import_node(builder, call, op, {first, second});
  if (is_rounded_first(first.type(), dtype)) first = cast({builder, first}, dtype);
  const Term sum = apply(op, {cast({builder, first}, wide), {builder, second}});
  return import_node(builder, call, "cast", {sum}, {{"dtype", dtype}});
}

// Powers that PyTorch computes by multiplication and roots, when the exponent is a constant.
Expr lower_pow(ElementContext& context, const Node& node, int result, std::span<const Expr> index) {
  const Node& exponent = *node.operands[1].node;
  const std::vector<Attr>& attrs = exponent.attrs;
  const int value = exponent.op->attr_index("value");
  if (exponent.op->traits.op_class == OpClass::source && value >= 0 && attrs.size() > 0 &&
      is_float(node.types.front().dtype)) {
    const auto* values = std::get_if<std::vector<double>>(&attrs[static_cast<size_t>(value)]);
    const Expr x = pointwise_operand(context, node, 0, index);
    const double power = values && values->size() == 1 ? values->front() : 0;
    Expr y;
    if (power == 2) y = x * x;
    if (power == 3) y = x * x * x;
    if (power == 0.5) y = sqrt(x);
    if (power == -0.5) y = rsqrt(x);
    if (power == -1) y = 1.0 / x;
    if (y) return loop::cast(y, node.types.front().dtype);
  }
  return pointwise_lower<[](Expr a, Expr b) { return loop::binary(BinaryOp::pow, a, b); }>(
      context, node, result, index);
}

using TwoSlopes = std::array<Term, 2>;

std::vector<OpDef> sums_and_products() {
  return {
      binary_row(
          {.name = "add",
           .summary = "self + other; of bools, or",
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::add(a, b); }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return a + b; }>,
           .derivative =
               pointwise_gradient<[](Term g, Term, Term, Term) { return TwoSlopes{g, g}; }>,
           .imports = {{.schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
                                  "Tensor",
                        .build = import_scaled<false>},
                       {.schema = "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> "
                                  "Tensor",
                        .build = import_scaled<false>}},
           .is_commutative = true}),
      binary_row(
          {.name = "sub",
           .summary = "self - other",
           .infer = infer_difference,
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::sub(a, b); }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return a - b; }>,
           .derivative =
               pointwise_gradient<[](Term g, Term, Term, Term) { return TwoSlopes{g, -g}; }>,
           .imports = {{.schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
                                  "Tensor",
                        .build = import_scaled<false>},
                       {.schema = "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> "
                                  "Tensor",
                        .build = import_scaled<false>},
                       {.schema = "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> "
                                  "Tensor",
                        .build = import_scaled<true>},
                       {.schema = "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> "
                                  "Tensor",
                        .build = import_scaled<true>}}}),
      binary_row(
          {.name = "mul",
           .summary = "self * other; of bools, and",
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::mul(a, b); }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return a * b; }>,
           .derivative = pointwise_gradient<[](Term g, Term a, Term b, Term) {
             return TwoSlopes{g * b, g * a};
           }>,
           .imports = scalar_and_tensor("mul"),
           .is_commutative = true}),
      binary_row(
          {.name = "maximum",
           .summary = "the larger of self and other; NaN when either is",
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::max(a, b); }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return max(a, b); }>,
           .derivative = pointwise_gradient<[](Term g, Term a, Term b, Term) {
             return TwoSlopes{select(gt(a, b), g, 0.0), select(gt(a, b), 0.0, g)};
           }>,
           .imports = {{"maximum(Tensor self, Tensor other) -> Tensor"},
                       {"max.other(Tensor self, Tensor other) -> Tensor"}},
           .is_commutative = true}),
      binary_row(
          {.name = "minimum",
           .summary = "the smaller of self and other; NaN when either is",
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::min(a, b); }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return min(a, b); }>,
           .derivative = pointwise_gradient<[](Term g, Term a, Term b, Term) {
             return TwoSlopes{select(lt(a, b), g, 0.0), select(lt(a, b), 0.0, g)};
           }>,
           .imports = {{"minimum(Tensor self, Tensor other) -> Tensor"},
                       {"min.other(Tensor self, Tensor other) -> Tensor"}},
           .is_commutative = true}),
  };
}

std::vector<OpDef> powers_and_angles() {
  return {
      binary_row(
          {.name = "pow",
           .summary = "self to the power of exponent",
           .infer = infer_of_numbers,
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::pow(a, b); }>,
           .lower = lower_pow,
           .derivative = pointwise_gradient<[](Term g, Term a, Term b, Term y) {
             return TwoSlopes{g * b * apply("pow", {a, b - 1.0}), g * y * log(a)};
           }>,
           .imports = {{"pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor"},
                       {"pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor"},
                       {"pow.Scalar(Scalar self, Tensor exponent) -> Tensor"}},
           .low = 0.5,
           .self_low = 0.5,
           .second = "exponent",
           .more = {{.operands = {{.dtype = DType::i32, .shape = {3}, .low = -3, .high = 4},
                                  {.dtype = DType::i32, .shape = {3}, .low = 0, .high = 4}}}}}),
      binary_row(
          {.name = "atan2",
           .summary = "the angle of the point (other, self)",
           .infer = infer_float,
           .reference = pointwise_reference<[](double a, double b) { return std::atan2(a, b); }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return atan2(a, b); }>,
           .derivative = pointwise_gradient<[](Term g, Term a, Term b, Term) {
             const Term scaled = g / (a * a + b * b);
             return TwoSlopes{scaled * b, -(scaled * a)};
           }>,
           .imports = {{"atan2(Tensor self, Tensor other) -> Tensor"}},
           .low = 0.5}),
  };
}

}  // namespace

std::vector<OpDef> define_binary() {
  std::vector<OpDef> rows = sums_and_products();
  for (OpDef& row : powers_and_angles()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace lathe
