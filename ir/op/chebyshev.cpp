// How long a series has to be (see chebyshev.h).
#include "ir/op/chebyshev.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lathe {
namespace {

// A half of the last bit, of f32 and f64.
constexpr double kHalfBit32 = 0x1p-26, kHalfBit64 = 0x1p-55;

size_t terms_above(std::span<const double> series, double part) {
  double largest = 0;
  for (double term : series) largest = std::max(largest, std::fabs(term));
  size_t n = series.size();
  while (n > 1 && std::fabs(series[n - 1]) < largest * part) --n;
  return n;
}

// The coefficients of the powers of t in a sum of Chebyshev polynomials.
std::vector<double> powers_of(std::span<const double> series) {
  const size_t n = series.size();
  std::vector<double> powers(n), before(n), own(n);  // of the sum, T_(k-1) and T_k
  own[0] = 1;
  for (size_t k = 0; k < n; ++k) {
    std::vector<double> next(n);
    for (size_t i = 0; i < n; ++i) {
      powers[i] += series[k] * own[i];
      if (i > 0) next[i] = (k == 0 ? 1 : 2) * own[i - 1];
      next[i] -= k == 0 ? 0 : before[i];
    }
    before = std::exchange(own, std::move(next));
  }
  return powers;
}

double sum_of_sizes(std::span<const double> numbers) {
  double sum = 0;
  for (const double number : numbers) sum += std::fabs(number);
  return sum;
}

}  // namespace

size_t terms_for(std::span<const double> series, double) { return terms_above(series, kHalfBit64); }

size_t terms_for(std::span<const double> series, loop::Expr like) {
  return terms_above(series, like->dtype == DType::f64 ? kHalfBit64 : kHalfBit32);
}

template <>
loop::Expr chebyshev<loop::Expr>(std::span<const double> series, loop::Expr t) {
  constexpr double kGrowth = 1.5;  // of what may be lost to rounding
  series = series.first(terms_for(series, t));
  const std::vector<double> powers = powers_of(series);
  const bool has_powers = sum_of_sizes(powers) <= kGrowth * sum_of_sizes(series);
  loop::Expr next = constant_like(t, 0), last = next;
  const loop::Expr twice = t * 2.0;
  for (size_t k = series.size(); k-- > 1;) {
    const loop::Expr sum = has_powers ? fma(next, t, constant_like(t, powers[k]))
                                      : fma(twice, next, constant_like(t, series[k]) - last);
    last = std::exchange(next, sum);
  }
  if (has_powers) return fma(next, t, constant_like(t, powers[0]));
  return fma(t, next, constant_like(t, series[0]) - last);
}

}  // namespace lathe
