// Ops of one operand that differ only in a scalar function.
#include <cmath>
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/formula.h"
#include "ir/op/pointwise.h"
#include "ir/op/unary_row.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::UnaryOp;

struct Domain {  // of the examples
  double low = -2, high = 2;
  DType dtype = DType::f32;
};

OpDef unary(std::string name, std::string summary, InferFn* infer, Slot<ReferenceFn> reference,
            Slot<LowerFn> lower, Slot<DerivativeFn> derivative, Domain domain = {}) {
  const auto example = [&](std::vector<int64_t> shape) {
    return Example{.operands = {{.dtype = domain.dtype,
                                 .shape = std::move(shape),
                                 .low = domain.low,
                                 .high = domain.high}}};
  };
  return unary_row({.name = std::move(name),
                    .summary = std::move(summary),
                    .infer = infer,
                    .reference = reference,
                    .lower = lower,
                    .derivative = derivative,
                    .examples = {example({2, 5}), example({})}});
}

Result<std::vector<TensorType>> infer_square(const Node& node) {
  LATHE_TRY(std::vector<TensorType> types, infer_same(node));
  if (types.front().dtype == DType::b8) types.front().dtype = DType::i64;
  return types;
}

constexpr Absent kStep{"the derivative is zero wherever it exists"};
constexpr Absent kNoFloat{"the result is not a float"};

std::vector<OpDef> arithmetic_rows() {
  return {
      unary("neg", "-x", infer_difference,
            pointwise_reference<[](auto x) { return arithmetic::neg(x); }>,
            pointwise_lower<[](Expr x) { return -x; }>,
            pointwise_gradient<[](Term g, Term, Term) { return -g; }>),
      unary("abs", "x without its sign", infer_of_numbers,
            pointwise_reference<[](auto x) { return arithmetic::abs(x); }>,
            pointwise_lower<[](Expr x) { return abs(x); }>,
            pointwise_gradient<[](Term g, Term x, Term) { return g * apply("sign", {x}); }>),
      unary("sign", "-1, 0 or 1; 0 for NaN", infer_same,
            pointwise_reference<[](auto x) { return static_cast<double>((x > 0) - (x < 0)); }>,
            pointwise_lower<[](Expr x) {
              const Expr zero = constant_like(x, 0);
              return cast(lt(zero, x), x->dtype) - cast(lt(x, zero), x->dtype);
            }>,
            kStep),
      unary("reciprocal", "1 / x", infer_float, pointwise_reference<[](double x) { return 1 / x; }>,
            pointwise_lower<[](Expr x) { return 1.0 / x; }>,
            pointwise_gradient<[](Term g, Term, Term y) { return -(g * y * y); }>, {0.5, 2}),
      unary("square", "x * x; of bools, integers", infer_square,
            pointwise_reference<[](auto x) { return arithmetic::mul(x, x); }>,
            pointwise_lower<[](Expr x) { return x * x; }>,
            pointwise_gradient<[](Term g, Term x, Term) { return g * x * 2.0; }>),
      unary("sqrt", "square root; NaN below zero", infer_float,
            pointwise_reference<[](double x) { return std::sqrt(x); }>,
            pointwise_lower<[](Expr x) { return sqrt(x); }>,
            pointwise_gradient<[](Term g, Term, Term y) { return g / (y * 2.0); }>, {0.1, 4}),
      unary("rsqrt", "1 / sqrt(x)", infer_float,
            pointwise_reference<[](double x) { return 1 / std::sqrt(x); }>,
            pointwise_lower<[](Expr x) { return rsqrt(x); }>,
            pointwise_gradient<[](Term g, Term, Term y) { return g * y * y * y * -0.5; }>,
            {0.2, 4}),
      unary("floor", "largest integer at most x", infer_of_numbers,
            pointwise_reference<[](auto x) { return arithmetic::floor(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::floor, x); }>, kStep),
      unary("ceil", "smallest integer at least x", infer_of_numbers,
            pointwise_reference<[](auto x) { return arithmetic::ceil(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::ceil, x); }>, kStep),
      unary("trunc", "x rounded towards zero", infer_of_numbers,
            pointwise_reference<[](auto x) { return arithmetic::trunc(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::trunc, x); }>, kStep),
      unary("round", "x rounded to the nearest integer, ties to even", infer_of_numbers,
            pointwise_reference<[](auto x) { return arithmetic::round_even(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::round_even, x); }>, kStep),
      unary("relu", "max(x, 0)", infer_of_numbers,
            pointwise_reference<[](auto x) { return arithmetic::max(x, decltype(x)(0)); }>,
            pointwise_lower<[](Expr x) { return max(x, constant_like(x, 0)); }>,
            pointwise_gradient<[](Term g, Term x, Term) { return select(gt(x, 0.0), g, 0.0); }>),
  };
}

std::vector<OpDef> exponential_rows() {
  return {
      unary("exp", "e to the power of x", infer_float,
            pointwise_reference<[](double x) { return std::exp(x); }>,
            pointwise_lower<[](Expr x) { return exp(x); }>,
            pointwise_gradient<[](Term g, Term, Term y) { return g * y; }>),
      unary("exp2", "2 to the power of x", infer_float,
            pointwise_reference<[](double x) { return std::exp2(x); }>,
            pointwise_lower<&loop::exp2>,
            pointwise_gradient<[](Term g, Term, Term y) { return g * y * M_LN2; }>),
      unary("expm1", "e^x - 1, exact near 0", infer_float,
            pointwise_reference<[](double x) { return std::expm1(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::expm1, x); }>,
            pointwise_gradient<[](Term g, Term, Term y) { return g * (y + 1.0); }>),
      unary("log", "natural logarithm; NaN below zero", infer_float,
            pointwise_reference<[](double x) { return std::log(x); }>,
            pointwise_lower<[](Expr x) { return log(x); }>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / x; }>, {0.1, 4}),
      unary("log2", "logarithm to base 2", infer_float,
            pointwise_reference<[](double x) { return std::log2(x); }>,
            pointwise_lower<&loop::log2>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / (x * M_LN2); }>, {0.1, 4}),
      unary("log10", "logarithm to base 10", infer_float,
            pointwise_reference<[](double x) { return std::log10(x); }>,
            pointwise_lower<&loop::log10>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / (x * M_LN10); }>, {0.1, 4}),
      unary("log1p", "log(1 + x), exact near 0", infer_float,
            pointwise_reference<[](double x) { return std::log1p(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::log1p, x); }>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / (x + 1.0); }>, {-0.5, 2}),
      unary("tanh", "hyperbolic tangent", infer_float,
            pointwise_reference<[](double x) { return std::tanh(x); }>,
            pointwise_lower<[](Expr x) { return tanh(x); }>,
            pointwise_gradient<[](Term g, Term, Term y) { return g * (1.0 - y * y); }>),
      unary("sigmoid", "1 / (1 + e^-x)", infer_float,
            pointwise_reference<[](double x) { return 1 / (1 + std::exp(-x)); }>,
            pointwise_lower<[](Expr x) { return 1.0 / (exp(-x) + 1.0); }>,
            pointwise_gradient<[](Term g, Term, Term y) { return g * y * (1.0 - y); }>),
      unary(
          "erf", "2 / sqrt(pi) times the integral of e^-t^2 from 0 to x", infer_float,
          pointwise_reference<[](double x) { return std::erf(x); }>,
          pointwise_lower<[](Expr x) { return erf(x); }>,
          pointwise_gradient<[](Term g, Term x, Term) { return g * exp(-(x * x)) * M_2_SQRTPI; }>),
      unary("sinh", "hyperbolic sine", infer_float,
            pointwise_reference<[](double x) { return std::sinh(x); }>,
            pointwise_lower<&loop::sinh>,
            pointwise_gradient<[](Term g, Term x, Term) { return g * apply("cosh", {x}); }>),
      unary("cosh", "hyperbolic cosine", infer_float,
            pointwise_reference<[](double x) { return std::cosh(x); }>,
            pointwise_lower<&loop::cosh>,
            pointwise_gradient<[](Term g, Term x, Term) { return g * apply("sinh", {x}); }>),
      unary("asinh", "inverse hyperbolic sine", infer_float,
            pointwise_reference<[](double x) { return std::asinh(x); }>,
            pointwise_lower<&loop::asinh>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / sqrt(x * x + 1.0); }>),
      unary("acosh", "inverse hyperbolic cosine; NaN below 1", infer_float,
            pointwise_reference<[](double x) { return std::acosh(x); }>,
            pointwise_lower<&loop::acosh>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / sqrt(x * x - 1.0); }>,
            {1.5, 4}),
      unary("atanh", "inverse hyperbolic tangent; NaN outside [-1, 1]", infer_float,
            pointwise_reference<[](double x) { return std::atanh(x); }>,
            pointwise_lower<&loop::atanh>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / (1.0 - x * x); }>,
            {-0.9, 0.9}),
  };
}

std::vector<OpDef> trigonometric_rows() {
  return {
      unary("sin", "sine of radians", infer_float,
            pointwise_reference<[](double x) { return std::sin(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::sin, x); }>,
            pointwise_gradient<[](Term g, Term x, Term) { return g * cos(x); }>),
      unary("cos", "cosine of radians", infer_float,
            pointwise_reference<[](double x) { return std::cos(x); }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::cos, x); }>,
            pointwise_gradient<[](Term g, Term x, Term) { return -(g * sin(x)); }>),
      unary("tan", "tangent of radians", infer_float,
            pointwise_reference<[](double x) { return std::tan(x); }>, pointwise_lower<&loop::tan>,
            pointwise_gradient<[](Term g, Term, Term y) { return g * (y * y + 1.0); }>, {-1, 1}),
      unary("asin", "inverse sine; NaN outside [-1, 1]", infer_float,
            pointwise_reference<[](double x) { return std::asin(x); }>,
            pointwise_lower<&loop::asin>,
            pointwise_gradient<[](Term g, Term x, Term) { return g * rsqrt(1.0 - x * x); }>,
            {-0.9, 0.9}),
      unary("acos", "inverse cosine; NaN outside [-1, 1]", infer_float,
            pointwise_reference<[](double x) { return std::acos(x); }>,
            pointwise_lower<&loop::acos>,
            pointwise_gradient<[](Term g, Term x, Term) { return -(g * rsqrt(1.0 - x * x)); }>,
            {-0.9, 0.9}),
      unary("atan", "inverse tangent", infer_float,
            pointwise_reference<[](double x) { return std::atan(x); }>,
            pointwise_lower<&loop::atan>,
            pointwise_gradient<[](Term g, Term x, Term) { return g / (x * x + 1.0); }>, {-4, 4}),
  };
}

std::vector<OpDef> boolean_rows() {
  return {
      unary("isnan", "whether x is not a number", infer_bool,
            pointwise_reference<[](auto x) { return x != x; }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::is_nan, x); }, true>,
            kNoFloat),
      unary("isinf", "whether x is an infinity", infer_bool,
            pointwise_reference<[](auto x) { return std::isinf(static_cast<double>(x)); }>,
            pointwise_lower<[](Expr x) {
              if (!is_float(x->dtype)) return x->pool->boolean(false);
              return eq(abs(x), constant_like(x, INFINITY));
            },
                            true>,
            kNoFloat),
      unary("logical_not", "whether x is zero", infer_bool,
            pointwise_reference<[](auto x) { return x == 0; }>,
            pointwise_lower<[](Expr x) { return logical_not(x); }, true>, kNoFloat),
      unary("bitwise_not", "every bit of an integer flipped; not of a bool", infer_of_bits,
            pointwise_reference<[](const Node& node, auto x) {
              const auto bits = static_cast<int64_t>(x);
              return node.types.front().dtype == DType::b8 ? static_cast<int64_t>(bits == 0)
                                                           : ~bits;
            }>,
            pointwise_lower<[](Expr x) { return loop::unary(UnaryOp::bit_not, x); }, true>,
            kNoFloat, {-8, 8, DType::i32}),
  };
}

}  // namespace

std::vector<OpDef> define_unary() {
  std::vector<OpDef> rows = arithmetic_rows();
  for (auto* family : {exponential_rows, trigonometric_rows, boolean_rows}) {
    for (OpDef& row : family()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace lathe
