// Prices of even and uneven products: see evening.h.
#include "passes/lowering/evening.h"

#include <algorithm>
#include <cmath>

namespace lathe {
namespace {

constexpr double kHalfBytes = 2;

// cuBLASLt's on an H100 with 4,096 rows, bf16: 4.2 us and 650 TFLOP/s where all is even, 12 us and
// 95 TFLOP/s where something is not; of few rows, whose weights take longest, 2.5 and 0.85 TB/s.
struct Price {
  double launch, flops, bytes;  // seconds, and per second
};
constexpr Price kEven = {4e-6, 650e12, 2.5e12};
constexpr Price kUneven = {9e-6, 95e12, 0.85e12};
constexpr Price kCopy = {3e-6, 1e15, 2.2e12};
constexpr double kFewColumns = 9e-6;        // a product of less than a step of them
constexpr double kLeastGain = 3e-6;         // of a product that is changed
constexpr double kMostKeptTwice = 8 << 20;  // bytes of weights that are kept twice

double seconds(const Price& price, double flops, double bytes) {
  return price.launch + std::max(flops / price.flops, bytes / price.bytes);
}
double copy_seconds(double elements) { return seconds(kCopy, 0, 2 * kHalfBytes * elements); }

}  // namespace

Evening choose_evening(const UnevenProduct& product, int64_t step) {
  const auto is_even = [&](double extent) {
    return std::fmod(extent, static_cast<double>(step)) == 0;
  };
  Evening evening;
  if (product.m <= 1) return evening;  // a vector times a matrix feeds no tensor cores
  evening.pads_rows = !is_even(product.n);
  evening.copies_a = !is_even(product.k) || !product.is_a_even;
  evening.copies_b = !is_even(product.k) || !product.is_b_even;
  const double b_bytes = kHalfBytes * product.b_elements;
  evening.fills_columns =
      evening.pads_rows && (evening.copies_b || product.n < static_cast<double>(step) ||
                            (product.is_b_constant && b_bytes <= kMostKeptTwice));
  evening.copies_b = evening.copies_b || evening.fills_columns;
  const double results = product.m * product.n, flops = 2 * results * product.k;
  const double bytes = kHalfBytes * (product.a_elements + product.b_elements + results);
  double even = seconds(kEven, flops, bytes);
  if (evening.copies_a && !product.is_a_constant) even += copy_seconds(product.a_elements);
  if (evening.copies_b && !product.is_b_constant) even += copy_seconds(product.b_elements);
  if (evening.pads_rows && !product.has_copy) even += copy_seconds(results);
  if (evening.pads_rows && !evening.fills_columns) even += kFewColumns;
  return even + kLeastGain < seconds(kUneven, flops, bytes) ? evening : Evening();
}

}  // namespace lathe
