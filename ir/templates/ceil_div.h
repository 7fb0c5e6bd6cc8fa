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
// b may be 0, of which there are as many as of 1: what is cut into parts of nothing is empty.
inline Dim ceil_div(const Dim& a, const Dim& b) {
  const Dim part = Dim::max(1, b);
  return part.is_const() ? ceil_div(a, part.value()) : Dim::floor_div(a + part - Dim(1), part);
}

}  // namespace lathe
