// pow: of floats through a logarithm of twice the precision, of integers by squaring.
#include <limits>

#include "ir/loop/scalar.h"
#include "ir/loop/vector_math.h"

namespace lathe::loop::vector_math {
namespace {

// A value as high + low, with |low| at most half a unit of high's last place.
struct Double {
  Expr high;
  Expr low;
};

// For |a| >= |b| or a = 0.
Double fast_sum(Expr a, Expr b) {
  Expr sum = a + b;
  return {sum, (a - sum) + b};
}
// x without the low half of its bits, which Dekker's product needs.
Expr upper_half(Expr x) {
  const Format& format = format_of(x);
  const int64_t mask = format.is_f32 ? ~int64_t{0xfff} : ~int64_t{0x7ffffff};
  return float_of(binary(BinaryOp::bit_and, bits_of(x), int_constant(x, format, mask)));
}

// Sums and products of twice the precision.
struct Arithmetic {
  bool has_fma;

  Double product(Expr a, Expr b) const {
    Expr high = a * b;
    if (has_fma) return {high, fma(a, b, -high)};
    Expr a1 = upper_half(a), b1 = upper_half(b);
    Expr a2 = a - a1, b2 = b - b1;
    return {high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2};
  }
  Double product(Double a, Double b) const {
    Double result = product(a.high, b.high);
    result.low = fma(a.low, b.high, fma(a.high, b.low, result.low));
    return result;
  }
  // c - a * b, which is small.
  Expr rest(Expr a, Expr b, Expr c) const {
    if (has_fma) return fma(-a, b, c);
    Double p = product(a, b);
    return (c - p.high) - p.low;
  }
};

// ((atanh(s) - s)/s^3 - 1/3)/s^2 in s^2: 2^-36 and 2^-66.
constexpr double kAtanhTailF32[] = {0.20000076293945312, 0.14273498952388763, 0.11710965633392334};
constexpr double kAtanhTailF64[] = {0.20000000000001147, 0.14285714285039697, 0.11111111261861974,
                                    0.09090892009437992, 0.07693387015266853, 0.06628207412448701,
                                    0.06600094516759188};

// log(x) for 0 < x < inf.
Double long_log(Expr x, Arithmetic arithmetic) {
  const Format& format = format_of(x);
  LogReduction reduced = reduce_log(x, true);
  Expr f = reduced.f;
  // s = f/(2 + f)
  Expr divisor = f + 2;
  Expr divisor_low = f - (divisor - 2);
  Double s = {f / divisor, {}};
  s.low = fma(-s.high, divisor_low, arithmetic.rest(s.high, divisor, f)) / divisor;
  Double t = arithmetic.product(s, s);
  // atanh(s) = s + s*t*(1/3 + t*tail(t))
  double third = format.is_f32 ? static_cast<double>(1.0f / 3.0f) : 1.0 / 3.0;
  double third_low = format.is_f32 ? -9.934107481e-9 : 1.850371707708594e-17;
  Expr tail = polynomial(t.high, coefficients(format, kAtanhTailF32, kAtanhTailF64));
  Double series = fast_sum(constant_like(f, third), fma(t.high, tail, constant_like(f, third_low)));
  Double rest = arithmetic.product(arithmetic.product(s, t), series);
  Double atanh = fast_sum(s.high, rest.high);
  atanh.low = atanh.low + (s.low + rest.low);
  // log = exponent*ln2 + 2*atanh(s); the first product is exact.
  Expr e = reduced.exponent;
  Double sum = fast_sum(e * format.ln2_high, atanh.high * 2);
  sum.low = sum.low + fma(e, constant_like(e, format.ln2_low), atanh.low * 2);
  return sum;
}

// |x|^y, but for y = 0 and the corners that pow() sets itself.
Expr magnitude_pow(Expr a, Expr y, Arithmetic arithmetic) {
  const Format& format = format_of(a);
  Expr infinity = constant_like(a, std::numeric_limits<double>::infinity());
  Double l = long_log(a, arithmetic);
  // log(0), log(inf) and log(NaN)
  l.high = select(lt(a, infinity), l.high, a);
  l.high = select(eq(a, constant_like(a, 0)), -infinity, l.high);
  const auto [high, error] = arithmetic.product(y, l.high);
  Expr low = fma(y, l.low, error);
  // Where the result over- or underflows, `low` may be inf - inf.
  low =
      select(lt(abs(high), constant_like(a, format.is_f32 ? 200 : 2000)), low, constant_like(a, 0));
  Expr clamped = min(max(high, constant_like(a, format.exp_min)), constant_like(a, format.exp_max));
  ExpReduction reduced = reduce_exp(clamped);
  Expr value = expm1_reduced(reduced.r + low) + 1;
  return scale_by_power(value, reduced.n_bits);
}

// By squaring, with all bits that an exponent of this dtype can have; wraps as products do. A
// negative exponent gives the truncated reciprocal.
Expr integer_pow(Expr base, Expr exponent) {
  Expr zero = constant_like(base, 0);
  Expr one = constant_like(base, 1);
  Expr result = one;
  Expr power = base;
  bool is_unsigned = base->dtype == DType::u8 || base->dtype == DType::b8;
  int num_bits = dtype_bits(base->dtype) - (is_unsigned ? 0 : 1);
  for (int i = 0; i < num_bits; ++i) {
    Expr bit = binary(BinaryOp::bit_and, exponent,
                      splat(base->pool->integer(int64_t{1} << i, base->dtype), base->lanes));
    result = select(eq(bit, zero), result, result * power);
    power = power * power;
  }
  if (is_unsigned) return result;
  Expr is_odd = ne(binary(BinaryOp::bit_and, exponent, one), zero);
  Expr minus_one = constant_like(base, -1);
  Expr reciprocal =
      select(eq(base, minus_one), select(is_odd, minus_one, one), select(eq(base, one), one, zero));
  return select(lt(exponent, zero), reciprocal, result);
}

// The exponents that are cheaper, and at least as exact, as products; null for others.
Expr special_power(Expr x, double exponent) {
  if (exponent == 0) return constant_like(x, 1);
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  if (exponent == 3) return x * x * x;
  if (exponent == 4) return (x * x) * (x * x);
  if (exponent == 0.5) return sqrt(x);
  if (exponent == -0.5) return 1 / sqrt(x);
  if (exponent == -1) return 1 / x;
  if (exponent == -2) return 1 / (x * x);
  return {};
}

}  // namespace

Expr pow(Expr x, Expr y, bool has_fma) {
  if (!is_float(x->dtype)) return integer_pow(x, y);
  const auto* same = std::get_if<Splat>(&y->kind);
  if (const FloatConst* c = as_float(same ? same->x : y))
    if (Expr special = special_power(x, c->value)) return special;

  Expr zero = constant_like(x, 0);
  Expr one = constant_like(x, 1);
  Expr infinity = constant_like(x, std::numeric_limits<double>::infinity());
  Expr a = abs(x);
  Expr result = magnitude_pow(a, y, {has_fma});
  // The sign of x counts when y is an odd integer; a finite x < 0 has no other real powers.
  Expr half = y * 0.5;
  Expr is_integer = eq(unary(UnaryOp::trunc, y), y);
  Expr is_odd = logical_and(is_integer, ne(unary(UnaryOp::trunc, half), half));
  Expr sign_bits = bits_of(x);
  Expr is_negative = lt(sign_bits, constant_like(sign_bits, 0));
  result = select(logical_and(is_negative, is_odd), -result, result);
  Expr is_undefined =
      logical_and(logical_and(lt(x, zero), lt(a, infinity)), logical_not(is_integer));
  result = select(is_undefined, constant_like(x, std::numeric_limits<double>::quiet_NaN()), result);
  // 1^y and x^0 are 1 even of NaN; so is (-1)^inf.
  Expr is_one = logical_or(logical_or(eq(x, one), eq(y, zero)),
                           logical_and(eq(a, one), eq(abs(y), infinity)));
  return select(is_one, one, result);
}

}  // namespace lathe::loop::vector_math
