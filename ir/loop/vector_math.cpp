// exp, log and their kin, tanh and erf as polynomials; see vector_math.h.
//
// Polynomials are minimax fits (Remez) of the function named beside them. The measured errors stand
// in expand_math.h.
#include "ir/loop/vector_math.h"

#include <limits>
#include <numbers>
#include <vector>

namespace lathe::loop::vector_math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 1.4426950408889634;

constexpr Format kF32 = {DType::f32,
                         DType::i32,
                         23,
                         0x3f800000,
                         0x3f3504f3,
                         12582912.0,
                         0x4b400000,
                         1.1754943508222875e-38,
                         0.693145751953125,
                         1.428606765330187e-06,
                         -105.0,
                         89.0,
                         true};
constexpr Format kF64 = {DType::f64,
                         DType::i64,
                         52,
                         0x3ff0000000000000,
                         0x3fe6a09e667f3bcd,
                         6755399441055744.0,
                         0x4338000000000000,
                         2.2250738585072014e-308,
                         6.93147180369123816490e-01,
                         1.90821492927058770002e-10,
                         -746.0,
                         710.0,
                         false};

// (e^r - 1 - r) / r^2 on |r| <= 0.5025*ln2, relative to e^r: 2^-34 and 2^-63.
constexpr double kExpF32[] = {0.5,
                              0.1666666716337204,
                              0.04166626185178757,
                              0.008333262987434864,
                              0.001394663704559207,
                              0.00019919007900170982};
constexpr double kExpF64[] = {0.5,
                              0.16666666666666685,
                              0.04166666666666673,
                              0.008333333333316078,
                              0.0013888888888857296,
                              0.00019841269898718223,
                              2.480158737576514e-05,
                              2.755723255935423e-06,
                              2.755723176660192e-07,
                              2.5112830657994354e-08,
                              2.092740496651898e-09};

// (atanh(s) - s) / s^3 in s^2, for (1 + s)/(1 - s) in [sqrt(1/2), sqrt(2)]: 2^-37 and 2^-66.
constexpr double kAtanhF32[] = {0.3333333134651184, 0.20000168681144714, 0.14268560707569122,
                                0.11792954057455063};
constexpr double kAtanhF64[] = {0.3333333333333333,  0.2000000000000318,  0.14285714284524573,
                                0.11111111326181251, 0.09090887608909716, 0.07693555213218187,
                                0.06624836316426747, 0.06627698776591623};

// erf(x)/x - 1 in x^2 on [0, 0.93] (2^-31) and [0, 1] (2^-62).
constexpr double kErfSmallF32[] = {
    0.12837916612625122,  -0.37612631916999817,   0.11283687502145767,  -0.026858940720558167,
    0.005199906416237354, -0.0008130010101012886, 8.316768071381375e-05};
constexpr double kErfSmallF64[] = {
    0.1283791670955126,      -0.3761263890318375,    0.11283791670954857,
    -0.0268661706450729,     0.005223977624780897,   -0.0008548326978743887,
    0.00012055331036958146,  -1.49255935082179e-05,  1.6460972837070267e-06,
    -1.6350025422970083e-07, 1.4657881117444617e-08, -1.1365670651581247e-09,
    5.945269338636726e-11};

// -log(1 - erf(x)) on [0.9, 4] (the error of erf is 2^-29) and [0.95, 6] (2^-61).
constexpr double kErfLargeF32[] = {
    0.00017748675600159913, 1.1277495622634888,   0.63705974817276,       0.10403735190629959,
    -0.022277072072029114,  0.003055599518120289, -0.00019718038674909621};
constexpr double kErfLargeF64[] = {
    8.903644413475031e-09,  1.1283791095891105,      0.6366198042617482,
    0.1027735875303887,     -0.019133799500822245,   -0.00019346371746688552,
    0.001664543816269019,   -0.0005427162747116782,  -2.911834889402864e-05,
    0.00011499591864193296, -6.677439326842916e-05,  2.505654855318248e-05,
    -7.024626666802315e-06, 1.5290313588259921e-06,  -2.596246744084024e-07,
    3.39000486987988e-08,   -3.2954352259076087e-09, 2.2483917424834717e-10,
    -9.608134972324006e-12, 1.9345076727756766e-13};

// -log2(1 - erf(x)) / x on [0, 8.46], so that 1 - erf(x) is near to 2^-24 (where it is small, to
// some percent).
constexpr double kErfcF32[] = {
    1.6279116868972778,   0.9183628559112549,    0.14877891540527344,     -0.029001014307141304,
    0.001736848265863955, 0.0008354471065104008, -0.00022364973847288638, 1.5934072507661767e-05};
constexpr double kErfcEnd = 8.459691;  // there it is 127 / x

// (2^x - 1) / x on [-1/2, 1/2]: 2^-23.
constexpr double kExp2F32[] = {0.6931469775988572, 0.2402224208517333, 0.05550733743691416,
                               0.00967151264890342, 0.0013264727065120316};

// log(1 + f) as f minus the second.
Expr log1p_correction(Expr f, Expr tail) {
  const Format& format = format_of(f);
  // log(1 + f) = 2*atanh(s) with 2*s = f - s*f; f stands alone, so that small f are exact.
  Expr s = f / (f + 2);
  Expr t = s * s;
  Expr half_square = f * f * 0.5;
  Expr series = t * 2 * polynomial(t, coefficients(format, kAtanhF32, kAtanhF64));
  return half_square - fma(s, half_square + series, tail);
}

// log(x) from a reduction of x, plus `low`, a small term in the result's units (may be null).
Expr log_reduced(const LogReduction& reduced, Expr low) {
  const Format& format = format_of(reduced.f);
  Expr e = reduced.exponent;
  Expr tail = e * format.ln2_low;
  if (low) tail = tail + low;
  return fma(e, constant_like(e, format.ln2_high), reduced.f - log1p_correction(reduced.f, tail));
}

// A long polynomial as two of half the length, which do not wait for each other. At least two
// coefficients.
Expr polynomial_by_halves(Expr x, std::span<const double> coefficients) {
  std::vector<double> halves[2];  // of even and of odd powers
  for (size_t i = 0; i < coefficients.size(); ++i) halves[i % 2].push_back(coefficients[i]);
  const Expr square = x * x;
  return fma(polynomial(square, halves[1]), x, polynomial(square, halves[0]));
}

// What log does outside (0, inf).
Expr log_edges(Expr x, Expr result) {
  Expr zero = constant_like(x, 0);
  Expr infinity = constant_like(x, kInfinity);
  result = select(eq(x, infinity), x, result);
  Expr at_edge =
      select(eq(x, zero), -infinity, constant_like(x, std::numeric_limits<double>::quiet_NaN()));
  return select(lt(zero, x), result, at_edge);
}

}  // namespace

const Format& format_of(Expr x) { return x->dtype == DType::f64 ? kF64 : kF32; }

Expr polynomial(Expr x, std::span<const double> coefficients) {
  Expr sum = constant_like(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = fma(sum, x, constant_like(x, coefficients[i]));
  return sum;
}

Expr int_constant(Expr like, const Format& format, int64_t value) {
  return splat(like->pool->integer(value, format.bits), like->lanes);
}
Expr bits_of(Expr x) { return bitcast(x, format_of(x).bits); }
Expr float_of(Expr bits) {
  return bitcast(bits, bits->dtype == DType::i64 ? DType::f64 : DType::f32);
}

Expr copy_sign(Expr magnitude, Expr sign) {
  const Format& format = format_of(sign);
  int64_t sign_bit = format.is_f32 ? INT32_MIN : INT64_MIN;
  Expr bit = binary(BinaryOp::bit_and, bits_of(sign), int_constant(sign, format, sign_bit));
  return float_of(binary(BinaryOp::bit_or, bits_of(abs(magnitude)), bit));
}

Expr clamp(Expr x, double low, double high) {
  return min(max(x, constant_like(x, low)), constant_like(x, high));
}

// --- exp ---

ExpReduction reduce_exp(Expr x) {
  const Format& format = format_of(x);
  Expr magic = constant_like(x, format.round_magic);
  Expr rounded = fma(x, constant_like(x, kLog2E), magic);
  Expr n = rounded - magic;
  Expr r = fma(n, constant_like(x, -format.ln2_high), x);
  return {bits_of(rounded), fma(n, constant_like(x, -format.ln2_low), r)};
}

Expr expm1_reduced(Expr r) {
  return fma(r * r, polynomial(r, coefficients(format_of(r), kExpF32, kExpF64)), r);
}

// The bits of round_magic lie above those that survive the shift.
Expr power_of_two(Expr n_bits, int64_t bias) {
  const Format& format = n_bits->dtype == DType::i64 ? kF64 : kF32;
  Expr shifted =
      binary(BinaryOp::shift_left, n_bits, int_constant(n_bits, format, format.mantissa_bits));
  int64_t base = format.one_bits + (bias << format.mantissa_bits);
  return float_of(shifted + int_constant(n_bits, format, base));
}

// In two halves, so that neither factor overflows; the first product is exact.
Expr scale_by_power(Expr value, Expr n_bits) {
  Expr half = binary(BinaryOp::shift_right, n_bits, int_constant(n_bits, format_of(value), 1));
  return value * power_of_two(half, 0) * power_of_two(n_bits - half, 0);
}

Expr exp(Expr x) {
  const Format& format = format_of(x);
  ExpReduction reduced = reduce_exp(clamp(x, format.exp_min, format.exp_max));
  return scale_by_power(expm1_reduced(reduced.r) + 1, reduced.n_bits);
}

// The fraction of x is exact, and so the product with ln2 is all that is rounded on the way.
Expr exp2(Expr x) {
  const Format& format = format_of(x);
  Expr clamped = clamp(x, format.is_f32 ? -151 : -1076, format.is_f32 ? 129 : 1025);
  Expr rounded = clamped + format.round_magic;
  Expr fraction = clamped - (rounded - format.round_magic);
  return scale_by_power(expm1_reduced(fraction * std::numbers::ln2) + 1, bits_of(rounded));
}

// 2^n*(e^r - 1) + (2^n - 1), at half size, so that 2^n does not overflow.
Expr expm1(Expr x) {
  const Format& format = format_of(x);
  ExpReduction reduced = reduce_exp(clamp(x, format.is_f32 ? -18 : -38, format.exp_max));
  Expr scale = power_of_two(reduced.n_bits, -1);
  Expr half = fma(scale, expm1_reduced(reduced.r), scale - 0.5);
  // Tiny operands keep their sign and their last bit.
  Expr tiny = constant_like(x, format.is_f32 ? 0x1p-25 : 0x1p-54);
  return select(lt(abs(x), tiny), x, half * 2);
}

Expr tanh(Expr x) {
  const Format& format = format_of(x);
  Expr a = min(abs(x), constant_like(x, format.is_f32 ? 10 : 20));
  ExpReduction reduced = reduce_exp(a * -2);
  Expr scale = power_of_two(reduced.n_bits, 0);
  Expr t = fma(scale, expm1_reduced(reduced.r), scale - 1);  // e^(-2|x|) - 1
  return copy_sign(t / (t + 2), x);
}

Expr erf(Expr x) {
  const Format& format = format_of(x);
  Expr a = min(abs(x), constant_like(x, format.is_f32 ? 4 : 6));
  Expr small = fma(a, polynomial(a * a, coefficients(format, kErfSmallF32, kErfSmallF64)), a);
  ExpReduction reduced =
      reduce_exp(-polynomial(a, coefficients(format, kErfLargeF32, kErfLargeF64)));
  Expr rest = power_of_two(reduced.n_bits, 0);
  Expr large = 1 - fma(rest, expm1_reduced(reduced.r), rest);
  Expr bound = constant_like(x, format.is_f32 ? 0.92 : 0.98);
  return copy_sign(select(lt(a, bound), small, large), x);
}

// One function of |x|, where erf is two: what is near zero need not be known beside the one.
Expr one_plus_erf(Expr x) {
  const Format& format = format_of(x);
  if (!format.is_f32) return vector_math::erf(x) + 1;
  Expr a = min(abs(x), constant_like(x, kErfcEnd));
  Expr rises = a * polynomial_by_halves(a, kErfcF32);
  Expr rounded = rises + format.round_magic;
  Expr r = rounded - format.round_magic - rises;
  // 2^-n; of 127 the bits are those of zero.
  Expr shifted =
      binary(BinaryOp::shift_left, bits_of(rounded), int_constant(x, format, format.mantissa_bits));
  Expr scale = float_of(int_constant(x, format, format.one_bits) - shifted);
  Expr rest = scale * fma(r, polynomial_by_halves(r, kExp2F32), constant_like(x, 1));
  return select(lt(x, constant_like(x, 0)), rest, 2 - rest);
}

// --- log ---

LogReduction reduce_log(Expr x, bool may_be_subnormal) {
  const Format& format = format_of(x);
  Expr bias;
  if (may_be_subnormal) {
    Expr is_subnormal = lt(x, constant_like(x, format.min_normal));
    double power = format.is_f32 ? 25 : 54;
    bias = select(is_subnormal, constant_like(x, power), constant_like(x, 0));
    x = select(is_subnormal, x * (format.is_f32 ? 0x1p25 : 0x1p54), x);
  }
  Expr bits = bits_of(x);
  Expr shift = int_constant(x, format, format.mantissa_bits);
  Expr e =
      binary(BinaryOp::shift_right, bits - int_constant(x, format, format.sqrt_half_bits), shift);
  Expr m = float_of(bits - binary(BinaryOp::shift_left, e, shift));
  // The integer e as a float, without a conversion that wide integers may lack.
  Expr exponent =
      float_of(e + int_constant(x, format, format.round_magic_bits)) - format.round_magic;
  return {bias ? exponent - bias : exponent, m - 1};
}

Expr log(Expr x) { return log_edges(x, log_reduced(reduce_log(x, true), {})); }

Expr log2(Expr x) {
  LogReduction reduced = reduce_log(x, true);
  Expr log = reduced.f - log1p_correction(reduced.f, constant_like(x, 0));
  return log_edges(x, fma(log, constant_like(x, kLog2E), reduced.exponent));
}

Expr log10(Expr x) {
  const Format& format = format_of(x);
  // log10(2) in two parts; the first times an exponent is exact.
  double high = format.is_f32 ? 0.301025390625 : 0.30102999566406652;
  double low = format.is_f32 ? 4.6050389811952e-06 : -8.5323443170571066e-14;
  LogReduction reduced = reduce_log(x, true);
  Expr e = reduced.exponent;
  Expr log = reduced.f - log1p_correction(reduced.f, constant_like(x, 0));
  Expr rest = fma(log, constant_like(x, std::numbers::log10e), e * low);
  return log_edges(x, fma(e, constant_like(x, high), rest));
}

// log(u) for the rounded u = 1 + x, and the part of x that rounding lost.
Expr log1p(Expr x) {
  Expr u = x + 1;
  Expr lost = x - (u - 1);
  Expr result = log_edges(u, log_reduced(reduce_log(u, false), lost / u));
  return select(eq(x, constant_like(x, 0)), x, result);
}

}  // namespace lathe::loop::vector_math
