// Quotients of two broadcast operands and what they leave.
//
// PyTorch raises where an integer divisor is 0. Kernels cannot, so there every one of these rows
// gives 0, on every target. Floats follow C's fmod, of which PyTorch makes all of them: what is
// left of a by b is exact, so a quotient that rounds up to an integer must not be taken for it.
#include <array>
#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/binary_row.h"
#include "ir/op/formula.h"
#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"
#include "ir/op/promotion.h"
#include "ir/op/term.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::UnaryOp;
using TwoSlopes = std::array<Term, 2>;

Result<std::vector<Value>> import_div_mode(Builder& builder, const ImportCall& call) {
  LATHE_TRY(Value self, import_tensor(builder, call, "self"));
  LATHE_TRY(Value other, import_tensor(builder, call, "other"));
  const std::string mode = call.string_attr("rounding_mode");
  const char* op = mode == "floor" ? "floor_divide" : mode == "trunc" ? "trunc_divide" : "div";
  return import_node(builder, call, op, {self, other});
}

// A number beside halves is rounded to them first, as PyTorch does here: what is left of a quotient
// has nothing to do with what is left of one nearby.
Result<std::vector<Value>> import_rest(Builder& builder, const ImportCall& call) {
  LATHE_TRY(const Value self, import_tensor(builder, call, "self"));
  LATHE_TRY(const Value other, import_tensor(builder, call, "other"));
  if (!self || !other) return import_node(builder, call, call.op->name, {self, other});
  const TensorType types[] = {self.type(), other.type()};
  const DType dtype = promote_operands(types);
  if (!is_half(dtype)) return import_node(builder, call, call.op->name, {self, other});
  return import_node(builder, call, call.op->name,
                     {cast({builder, self}, dtype), cast({builder, other}, dtype)});
}

std::vector<Import> rest_imports(const std::string& name) {
  std::vector<Import> imports = scalar_and_tensor(name);
  if (name == "remainder")
    imports.push_back({.schema = "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"});
  for (Import& import : imports) import.build = import_rest;
  return imports;
}

constexpr Absent kStep{"piecewise constant in the quotient"};

Expr trunc(Expr x) { return loop::unary(UnaryOp::trunc, x); }

// What f32 quotients are taken in: those below 2^29 are not rounded to an integer that they do not
// reach, and an integer below 2^29 times an f32 is exact.
Expr widened(Expr x) { return x->dtype == DType::f32 ? cast(x, DType::f64) : x; }

Expr is_on_other_side(Expr rest, Expr of) {  // of zero
  return logical_and(ne(rest, constant_like(rest, 0)), ne(lt(rest, 0.0), lt(of, 0.0)));
}

// a - trunc(a / b) * b, of widened floats: exact for f32 while the quotient is below 2^29, for f64
// below 2^53 where fma fuses. An infinite divisor leaves a.
Expr float_rest(Expr a, Expr b, DType dtype) {
  const Expr quotient = trunc(a / b);
  Expr rest = fma(-quotient, b, a);
  if (dtype == DType::f64) {
    const Expr back = select(lt(a, 0.0), rest - abs(b), rest + abs(b));
    rest = select(is_on_other_side(rest, a), back, rest);
  }
  return select(eq(quotient, 0.0), a, rest);
}

Expr float_fmod(Expr a, Expr b) {
  return cast(float_rest(widened(a), widened(b), a->dtype), a->dtype);
}

Expr float_remainder(Expr a, Expr b) {
  const Expr rest = float_fmod(a, b);
  return select(is_on_other_side(rest, b), rest + b, rest);
}

Expr float_floor_divide(Expr a, Expr b) {
  const Expr x = widened(a), y = widened(b);
  const Expr rest = float_rest(x, y, a->dtype);
  const Expr towards_zero = loop::unary(UnaryOp::round_even, (x - rest) / y);
  const Expr down = select(is_on_other_side(rest, y), towards_zero - 1.0, towards_zero);
  return cast(select(eq(y, 0.0), x / y, down), a->dtype);
}

// Of integers, a / b is 0 where b is.
Expr integer_fmod(Expr a, Expr b) {
  const Expr is_zero = eq(b, 0.0);
  return select(is_zero, 0.0, a - a / b * b);
}

// Quotients that round up to an integer, infinite divisors and dividends, large quotients. Not of
// f64, whose products are rounded where a target has no fma.
std::vector<Example> float_examples() {
  const ExampleTensor self{.shape = {10},
                           .values = {1, -1, 0.3, 7, -7, 7, 5.5, INFINITY, 4e8, -3e8}};
  const ExampleTensor other{
      .shape = {10}, .values = {0.1, 0.1, 0.1, INFINITY, INFINITY, -INFINITY, -2, 2, 3, 1.1}};
  return {{.operands = {self, other}}};
}

constexpr auto kFmod = [](Expr a, Expr b) {
  return is_float(a->dtype) ? float_fmod(a, b) : integer_fmod(a, b);
};
constexpr auto kRemainder = [](Expr a, Expr b) {
  return is_float(a->dtype) ? float_remainder(a, b) : mod(a, b);
};
constexpr auto kFloorDivide = [](Expr a, Expr b) {
  return is_float(a->dtype) ? float_floor_divide(a, b) : floor_div(a, b);
};

}  // namespace

std::vector<OpDef> define_quotient() {
  return {
      binary_row(
          {.name = "div",
           .summary = "self / other, in floats",
           .infer = infer_float,
           .reference = pointwise_reference<[](double a, double b) { return a / b; }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return a / b; }>,
           .derivative = pointwise_gradient<[](Term g, Term, Term b, Term y) {
             return TwoSlopes{g / b, -(g * y / b)};
           }>,
           .imports =
               {{"div.Tensor(Tensor self, Tensor other) -> Tensor"},
                {"div.Scalar(Tensor self, Scalar other) -> Tensor"},
                {"true_divide.Tensor(Tensor self, Tensor other) -> Tensor"},
                {.schema =
                     "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
                 .build = import_div_mode},
                {.schema = "div.Scalar_mode(Tensor self, Scalar other, *, str? "
                           "rounding_mode) -> Tensor",
                 .build = import_div_mode}},
           .low = 0.5}),
      binary_row(
          {.name = "floor_divide",
           .summary = "self / other, rounded to minus infinity; 0 for an integer zero divisor",
           .infer = infer_of_numbers,
           .reference =
               pointwise_reference<[](auto a, auto b) { return arithmetic::floor_div(a, b); }>,
           .lower = pointwise_lower<kFloorDivide>,
           .derivative = kStep,
           .imports = {{"floor_divide(Tensor self, Tensor other) -> Tensor"},
                       {"floor_divide.Scalar(Tensor self, Scalar other) -> Tensor"}},
           .dtype = DType::i32,
           .low = 1,
           .self_low = -9,
           .more = float_examples()}),
      binary_row(
          {.name = "trunc_divide",
           .summary = "self / other, rounded towards zero; 0 for an integer zero divisor",
           .infer = infer_of_numbers,
           .reference =
               pointwise_reference<[](auto a, auto b) { return arithmetic::trunc_div(a, b); }>,
           .lower = pointwise_lower<[](Expr a, Expr b) { return trunc(a / b); }>,
           .derivative = kStep,
           .imports = {},
           .dtype = DType::i32,
           .low = 1,
           .self_low = -9}),
      binary_row(
          {.name = "remainder",
           .summary = "self - other * floor(self / other): the sign of the divisor; 0 for an "
                      "integer zero divisor",
           .infer = infer_of_numbers,
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::mod(a, b); }>,
           .lower = pointwise_lower<kRemainder>,
           .derivative = kStep,
           .imports = rest_imports("remainder"),
           .dtype = DType::i32,
           .low = 1,
           .self_low = -9,
           .more = float_examples()}),
      binary_row(
          {.name = "fmod",
           .summary = "self - other * trunc(self / other): the sign of the dividend; 0 for an "
                      "integer zero divisor",
           .infer = infer_of_numbers,
           .reference = pointwise_reference<[](auto a, auto b) { return arithmetic::fmod(a, b); }>,
           .lower = pointwise_lower<kFmod>,
           .derivative = kStep,
           .imports = rest_imports("fmod"),
           .dtype = DType::i32,
           .low = 1,
           .self_low = -9,
           .more = float_examples()}),
  };
}

}  // namespace lathe
