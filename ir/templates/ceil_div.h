// How many blocks cover an extent.
#pragma once
#include <cstdint>

namespace lathe {

// a / b, rounded up; neither is negative, and b is not 0.
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace lathe
