// Scalar arithmetic of references, once for doubles and once for integers, where C++ would
// overflow, trap or round differently: integers wrap, and a zero divisor gives 0 (PyTorch raises).
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace lathe::arithmetic {

inline double add(double a, double b) { return a + b; }
inline double sub(double a, double b) { return a - b; }
inline double mul(double a, double b) { return a * b; }
inline int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline double neg(double a) { return -a; }
inline int64_t neg(int64_t a) { return sub(int64_t{0}, a); }

// NaN when either side is NaN.
inline double max(double a, double b) { return a > b || std::isnan(a) ? a : b; }
inline double min(double a, double b) { return a < b || std::isnan(a) ? a : b; }
inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

// Rounded towards zero.
inline double trunc_div(double a, double b) { return std::trunc(a / b); }
inline int64_t trunc_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? neg(a) : a / b;
}
inline double fmod(double a, double b) { return std::fmod(a, b); }
inline int64_t fmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

// Rounded to minus infinity; the remainder has the divisor's sign.
inline int64_t floor_div(int64_t a, int64_t b) {
  const int64_t quotient = trunc_div(a, b);
  return fmod(a, b) != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline double mod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
// Not the floor of a / b, which may be rounded up to an integer; none for an infinite a.
inline double floor_div(double a, double b) {
  if (b == 0) return a / b;
  const double rest = std::fmod(a, b), towards_zero = std::nearbyint((a - rest) / b);
  return rest != 0 && (rest < 0) != (b < 0) ? towards_zero - 1 : towards_zero;
}
inline int64_t mod(int64_t a, int64_t b) {
  const int64_t rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

inline double pow(double a, double b) { return std::pow(a, b); }
// A negative exponent truncates the reciprocal, as PyTorch does.
inline int64_t pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; b > 0; b /= 2) {
    if (b % 2 != 0) result = mul(result, a);
    a = mul(a, a);
  }
  return result;
}

inline double floor(double a) { return std::floor(a); }
inline double ceil(double a) { return std::ceil(a); }
inline double trunc(double a) { return std::trunc(a); }
inline double round_even(double a) { return std::nearbyint(a); }
inline int64_t floor(int64_t a) { return a; }
inline int64_t ceil(int64_t a) { return a; }
inline int64_t trunc(int64_t a) { return a; }
inline int64_t round_even(int64_t a) { return a; }

inline double abs(double a) { return std::fabs(a); }
inline int64_t abs(int64_t a) { return a < 0 ? neg(a) : a; }

}  // namespace lathe::arithmetic
