// The functions behind expand_math: each builds an expression of the operand's dtype (f32 or f64)
// and lanes, from fma, division, comparison, select and integer operations on the float's bits.
#pragma once
#include <span>

#include "ir/loop/pool.h"

namespace lathe::loop::vector_math {

Expr exp(Expr x);
Expr exp2(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);
Expr log2(Expr x);  // of a power of two: its exponent
Expr log10(Expr x);
Expr log1p(Expr x);
Expr tanh(Expr x);
Expr erf(Expr x);
Expr one_plus_erf(Expr x);  // to 2^-23, as the sum rounds it
// `has_fma`: fma is one rounding. Where it is two, what would cancel is computed in parts.
Expr sin(Expr x, bool has_fma);
Expr cos(Expr x, bool has_fma);
// The condition under which sin and cos of f32 reduce x by a window of 2/pi. They select by this
// very expression, so that replacing it by false leaves the rest.
Expr is_large(Expr x, bool has_fma);
Expr pow(Expr x, Expr y, bool has_fma);  // also of integers

// --- what they are made of ---

// A binary float format and the constants that depend on it.
struct Format {
  DType dtype;
  DType bits;         // the integer of its width
  int mantissa_bits;  // explicit ones
  int64_t one_bits;   // of 1.0
  int64_t sqrt_half_bits;
  double round_magic;  // 1.5 * 2^mantissa_bits: adding it rounds to an integer in the low bits
  int64_t round_magic_bits;
  double min_normal;
  double ln2_high;  // times an exponent is exact
  double ln2_low;
  double exp_min;  // exp below is 0,
  double exp_max;  // above infinite
  bool is_f32;
};
const Format& format_of(Expr x);

// Coefficients by rising power.
Expr polynomial(Expr x, std::span<const double> coefficients);
inline std::span<const double> coefficients(const Format& format, std::span<const double> f32,
                                            std::span<const double> f64) {
  return format.is_f32 ? f32 : f64;
}
Expr int_constant(Expr like, const Format& format, int64_t value);
Expr bits_of(Expr x);
Expr float_of(Expr bits);
Expr copy_sign(Expr magnitude, Expr sign);
Expr clamp(Expr x, double low, double high);  // NaN stays NaN

// x = n*ln2 + r with |r| <= ln2/2.
struct ExpReduction {
  Expr n_bits;  // n in the low bits, above it the bits of round_magic
  Expr r;
};
ExpReduction reduce_exp(Expr x);
Expr expm1_reduced(Expr r);                    // e^r - 1
Expr power_of_two(Expr n_bits, int64_t bias);  // 2^(n + bias), when it is normal
Expr scale_by_power(Expr value, Expr n_bits);  // value * 2^n for any n, rounded once

// x = 2^exponent * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); exponent is a float. x > 0.
struct LogReduction {
  Expr exponent;
  Expr f;
};
LogReduction reduce_log(Expr x, bool may_be_subnormal);

}  // namespace lathe::loop::vector_math
