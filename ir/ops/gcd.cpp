// gcd: greatest common divisors by Euclid's algorithm, in steps that all elements of a vector take
// while one of them needs more.
#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/loop/scalar.h"
#include "ir/op/binary_row.h"
#include "ir/op/formula.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;

Result<std::vector<TensorType>> infer_gcd(const Node& node) {
  if (promote_operands(operand_types(node)) == DType::b8)
    return Diag{code::kDtypeMismatch, node.loc, "'gcd' takes integers, got bools"};
  return infer_of_bits(node);
}

// The remainder that is nearest to zero: steps at least multiply the smaller number's size by
// sqrt(2) - 1, after one that sorts the two. Any quotient leaves the divisors that both have, so of
// i64 one that f64 rounds will do; where it is far off little is left of the numbers.
Expr next_divisor(Expr a, Expr b) {
  Expr quotient = loop::unary(loop::UnaryOp::round_even, cast(a, DType::f64) / cast(b, DType::f64));
  if (a->dtype == DType::f32) quotient = loop::unary(loop::UnaryOp::round_even, a / b);
  return select(eq(b, 0.0), 0.0, abs(a - cast(quotient, a->dtype) * b));
}

constexpr int64_t kStepsAtOnce = 5;

// What has no rest any more is done.
Expr divisor_within(Expr a, Expr b, int64_t steps) {
  for (int64_t step = 0; step < std::min(steps, kStepsAtOnce); ++step) {
    const Expr rest = next_divisor(a, b);
    a = select(eq(b, 0.0), a, b);
    b = rest;
  }
  if (steps <= kStepsAtOnce) return a;
  return select(ne(b, constant_like(b, 0)), divisor_within(a, b, steps - kStepsAtOnce), a);
}

// Integers of 32 bits and their quotients are exact in f64, which has vectors of divisions.
Expr lower_gcd(Expr a, Expr b) {
  const DType dtype = a->dtype;
  const int64_t bits = 8 * dtype_bytes(dtype);
  const DType in = dtype == DType::i64 ? dtype : dtype == DType::i32 ? DType::f64 : DType::f32;
  a = abs(cast(a, in)), b = abs(cast(b, in));
  return cast(divisor_within(a, b, bits * 4 / 5 + 4), dtype);
}

Result<std::vector<Value>> import_lcm(Builder& builder, const ImportCall& call) {
  const Term self{builder, call.value("self")}, other{builder, call.value("other")};
  const Term shared = apply("gcd", {self, other});
  const Term result = abs(apply("trunc_divide", {self, shared}) * other);
  if (builder.failed()) return builder.error();
  if (call.in_place) return import_node(builder, call, "copy", {self, result});
  return std::vector<Value>{result};
}

}  // namespace

std::vector<OpDef> define_gcd() {
  OpDef row = binary_row(
      {.name = "gcd",
       .summary = "the greatest integer that divides both; of zeros, 0",
       .infer = infer_gcd,
       .reference = pointwise_reference<[](auto a, auto b) {
         return std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b));
       }>,
       .lower = pointwise_lower<lower_gcd>,
       .derivative = Absent{"the result is not a float"},
       .imports = {{"gcd(Tensor self, Tensor other) -> Tensor"},
                   {.schema = "lcm(Tensor self, Tensor other) -> Tensor", .build = import_lcm}},
       .is_commutative = true,
       .dtype = DType::i32,
       .low = -60,
       .self_low = -60});
  // Neighbours of Fibonacci's and of Pell's sequence take the most steps.
  const auto longest = [&](DType dtype, std::vector<double> self, std::vector<double> other) {
    const auto count = static_cast<int64_t>(self.size());
    row.examples.push_back(
        {.operands = {{.dtype = dtype, .shape = {count}, .values = std::move(self)},
                      {.dtype = dtype, .shape = {count}, .values = std::move(other)}}});
  };
  longest(DType::i32, {0, 0, -12, 1836311903, 1311738121, 2147483647},
          {0, -8, 18, 1134903170, 543339720, 2147483646});
  longest(DType::i64, {0, 4052739537881, 4866752642924153}, {5, 6557470319842, 2015874949414289});
  longest(DType::i8, {127, 89, 70, -90}, {-127, 55, 29, 96});
  longest(DType::u8, {255, 233, 169}, {254, 144, 70});
  longest(DType::i16, {32767, 28657, 13860}, {32766, 17711, 5741});
  return {row};
}

}  // namespace lathe
