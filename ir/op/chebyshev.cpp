// How long a series has to be (see chebyshev.h).
#include "ir/op/chebyshev.h"

#include <algorithm>

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

}  // namespace

size_t terms_for(std::span<const double> series, double) { return terms_above(series, kHalfBit64); }

size_t terms_for(std::span<const double> series, loop::Expr like) {
  return terms_above(series, like->dtype == DType::f64 ? kHalfBit64 : kHalfBit32);
}

}  // namespace lathe
