// How many blocks cover an extent.
#pragma once
#include <cstdint>

#include "ir/type/dim.h"

namespace lathe {

// a / b, rounded up; neither is negative, and b is not 0.
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The same of sizes; b is positive.
inline Dim ceil_div(const Dim& a, int64_t b) {
  return a.is_const() ? Dim(ceil_div(a.value(), b)) : Dim::floor_div(a + Dim(b - 1), b);
}
inline Dim ceil_div(const Dim& a, const Dim& b) {
  return b.is_const() ? ceil_div(a, b.value()) : Dim::floor_div(a + b - Dim(1), b);
}

}  // namespace lathe
