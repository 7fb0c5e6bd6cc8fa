// Series of Chebyshev polynomials, and the numbers' half of formulas (formula.h): what is written
// once for a type T runs on doubles in references and lowers with loop expressions.
#pragma once
#include <cmath>
#include <numbers>
#include <span>

#include "ir/op/formula.h"

namespace lathe {

inline double constant_like(double, double value) { return value; }
inline double select(bool condition, double if_true, double if_false) {
  return condition ? if_true : if_false;
}
inline bool lt(double a, double b) { return a < b; }
inline bool le(double a, double b) { return a <= b; }
inline bool gt(double a, double b) { return a > b; }
inline bool eq(double a, double b) { return a == b; }
inline double floor(double x) { return std::floor(x); }
inline double round_even(double x) { return std::nearbyint(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double exp(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double abs(double x) { return std::fabs(x); }
inline double min(double a, double b) { return a < b || std::isnan(a) ? a : b; }
inline double max(double a, double b) { return a > b || std::isnan(a) ? a : b; }
inline double erf(double x) { return std::erf(x); }
inline double fma(double a, double b, double c) { return a * b + c; }

namespace loop {
inline Expr floor(Expr x) { return unary(UnaryOp::floor, x); }
inline Expr round_even(Expr x) { return unary(UnaryOp::round_even, x); }
inline Expr sin(Expr x) { return unary(UnaryOp::sin, x); }
inline Expr cos(Expr x) { return unary(UnaryOp::cos, x); }
}  // namespace loop

// How many terms of a series reach the precision of its argument. Series of smooth functions
// converge so evenly that a cut one is nearly the best of its length.
size_t terms_for(std::span<const double> series, double like);
size_t terms_for(std::span<const double> series, loop::Expr like);

// The sum of series[k] * T_k(t) for t in [-1, 1], by Clenshaw's recurrence.
template <class T>
T chebyshev(std::span<const double> series, T t) {
  const size_t n = terms_for(series, t);
  T next = constant_like(t, 0), last = constant_like(t, 0);
  const T twice = t * 2.0;
  for (size_t k = n; k-- > 1;) {
    const T sum = fma(twice, next, constant_like(t, series[k]) - last);
    last = next;
    next = sum;
  }
  return fma(t, next, constant_like(t, series[0]) - last);
}
// In loops by Horner's rule, which takes half as many operations, where powers of t are as good a
// basis: of series that converge fast.
template <>
loop::Expr chebyshev<loop::Expr>(std::span<const double> series, loop::Expr t);

// coefficients[0] + coefficients[1] * x + ...
template <class T>
T polynomial(std::span<const double> coefficients, T x) {
  T sum = constant_like(x, coefficients.back());
  for (size_t k = coefficients.size() - 1; k-- > 0;) sum = sum * x + coefficients[k];
  return sum;
}

}  // namespace lathe
