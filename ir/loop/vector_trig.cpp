// sin and cos: x = n*pi/2 + r with |r| <= pi/4, and a polynomial in r. Products of n with the parts
// of pi/2 are exact: where fma is not one rounding, by parts with few bits. Beyond the range where
// they are, f32 takes the fraction of |x| * 2/pi from a window of the bits of 2/pi, after Payne and
// Hanek.
#include "ir/loop/vector_math.h"

namespace lathe::loop::vector_math {
namespace {

// (sin(r) - r)/r^3 and (cos(r) - 1 + r^2/2)/r^4 in r^2 on |r| <= 0.8: 2^-33 and better, 2^-68.
constexpr double kSinF32[] = {-0.1666666716337204, 0.008333329111337662, -0.00019839187734760344,
                              2.7169176064489875e-06};
constexpr double kSinF64[] = {
    -0.16666666666666666,   0.008333333333333321,  -0.00019841269841252166, 2.75573192126806e-06,
    -2.505210451746205e-08, 1.605831636543268e-10, -7.576206235245144e-13};
constexpr double kCosF32[] = {0.04166664555668831, -0.0013887251261621714, 2.4424911316600628e-05};
constexpr double kCosF64[] = {
    0.041666666666666664,  -0.001388888888888887,  2.480158730156836e-05, -2.7557319214033516e-07,
    2.087675406528628e-09, -1.147025930646738e-11, 4.7365860958563666e-14};

// pi/2.
constexpr double kPartsF32[] = {1.57079637050628662109375, -4.37113900018624283e-8,
                                -1.71512489361402e-15};
constexpr double kPartsF64[] = {1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33};
// The same for products that are rounded: n has 9 and 30 bits, the first two parts 15 and 23.
constexpr double kShortPartsF32[] = {1.57080078125, -4.4545158743858337402e-06,
                                     6.0771006282767103812e-11};
constexpr double kShortPartsF64[] = {1.5707962512969970703, 7.5497894158615963534e-08,
                                     5.3903028581581189681e-15};
// Up to where n * parts is exact, and the bits of these bounds.
constexpr int64_t kLargeF32 = 0x48000000;       // 2^17
constexpr int64_t kLargeShortF32 = 0x44000000;  // 2^9
constexpr int64_t kInfinityF32 = 0x7f800000;

// 2/pi, its first bit behind 25 zeros: |x| = m * 2^(s - 23) with m in [2^23, 2^24) takes the 96
// bits behind bit s for the product modulo 4.
constexpr uint32_t kTwoOverPi[] = {0x00000051, 0x7cc1b727, 0x220a94fe, 0x13abe8fa,
                                   0x9a6ee06d, 0xb14acc9e, 0x21c820ff};

struct Reduction {
  Expr n_bits;  // n, at least its two low bits
  Expr r;
};

Reduction reduce_small(Expr x, bool has_fma) {
  const Format& format = format_of(x);
  Expr rounded = fma(x, constant_like(x, 0.6366197723675814), constant_like(x, format.round_magic));
  Expr n = rounded - format.round_magic;
  Expr r = x;
  const auto parts = has_fma ? coefficients(format, kPartsF32, kPartsF64)
                             : coefficients(format, kShortPartsF32, kShortPartsF64);
  for (double part : parts) r = fma(n, constant_like(x, -part), r);
  return {bits_of(rounded), r};
}

Expr low_word(Expr x) { return binary(BinaryOp::bit_and, x, constant_like(x, 0xffffffff)); }
Expr high_word(Expr x) { return binary(BinaryOp::shift_right, x, constant_like(x, 32)); }
Expr shifted_left(Expr x, Expr by) { return binary(BinaryOp::shift_left, x, by); }

// Word `k` of the 96 bits of 2/pi behind bit s, for s = 64 * is_far + 32 * is_odd + shift.
Expr window(int k, Expr is_far, Expr is_odd, Expr shift) {
  Expr pairs[4];
  for (int i = 0; i < 4; ++i) {
    const uint64_t next = i + k + 1 < 7 ? kTwoOverPi[i + k + 1] : 0;
    const uint64_t pair = uint64_t{kTwoOverPi[i + k]} << 32 | next;
    pairs[i] = splat(shift->pool->integer(static_cast<int64_t>(pair)), shift->lanes);
  }
  Expr far = select(is_odd, pairs[3], pairs[2]), near = select(is_odd, pairs[1], pairs[0]);
  Expr pair = select(is_far, far, near);
  return low_word(high_word(shifted_left(pair, shift)));
}

// Of f32 with 1 <= |x| < inf; for others r is finite.
Reduction reduce_large(Expr x) {
  const Format& format = format_of(x);
  auto i32 = [&](int64_t value) { return int_constant(x, format, value); };
  auto masked = [&](Expr bits, int64_t mask) { return binary(BinaryOp::bit_and, bits, i32(mask)); };
  Expr bits = bits_of(abs(x));
  Expr s = binary(BinaryOp::shift_right, bits, i32(23)) - i32(127);
  Expr m = cast(binary(BinaryOp::bit_or, masked(bits, 0x7fffff), i32(0x800000)), DType::i64);
  Expr is_far = ne(masked(s, 64), i32(0)), is_odd = ne(masked(s, 32), i32(0));
  Expr shift = cast(masked(s, 31), DType::i64);
  // The product modulo 2^96, without its low 32 bits: two bits of n, and 62 behind the point.
  Expr low = m * window(2, is_far, is_odd, shift);
  Expr middle = m * window(1, is_far, is_odd, shift) + high_word(low);
  Expr high = m * window(0, is_far, is_odd, shift) + high_word(middle);
  Expr turns =
      binary(BinaryOp::bit_or, shifted_left(high, constant_like(high, 32)), low_word(middle));
  Expr half = splat(x->pool->integer(int64_t{1} << 61), x->lanes);
  Expr n = cast(binary(BinaryOp::shift_right, turns + half, constant_like(turns, 62)), DType::i32);
  // The rest in [-1/2, 1/2), times 2^64: its words become f64 by way of 1.5*2^52 and 2^52.
  Expr rest = shifted_left(turns, constant_like(turns, 2));
  auto wide = [&](int64_t value) { return splat(x->pool->integer(value), x->lanes); };
  Expr upper = bitcast(high_word(rest) + wide(0x4338000000000000), DType::f64) - 0x1.8p52;
  Expr lower_bits = binary(BinaryOp::bit_or, low_word(rest), wide(0x4330000000000000));
  Expr lower = bitcast(lower_bits, DType::f64) - 0x1p52;
  Expr r = cast((upper * 0x1p32 + lower) * (1.5707963267948966 * 0x1p-64), DType::f32);
  Expr is_negative = lt(bits_of(x), i32(0));
  return {select(is_negative, -n, n), select(is_negative, -r, r)};
}

Reduction reduce(Expr x, bool has_fma) {
  Reduction small = reduce_small(x, has_fma);
  // Large ones lose accuracy step by step.
  if (x->dtype == DType::f64) return {small.n_bits, clamp(small.r, -0.8, 0.8)};
  Expr large = is_large(x, has_fma);
  Reduction by_window = reduce_large(x);
  return {select(large, by_window.n_bits, small.n_bits), select(large, by_window.r, small.r)};
}

// sin(x + quarter_turns*pi/2).
Expr sin_or_cos(Expr x, int64_t quarter_turns, bool has_fma) {
  const Format& format = format_of(x);
  const auto [n_bits, r] = reduce(x, has_fma);
  Expr t = r * r;
  Expr sine = fma(r * t, polynomial(t, coefficients(format, kSinF32, kSinF64)), r);
  Expr cosine = fma(t * t, polynomial(t, coefficients(format, kCosF32, kCosF64)),
                    fma(t, constant_like(t, -0.5), constant_like(t, 1)));
  Expr quadrant = n_bits + int_constant(x, format, quarter_turns);
  auto bit = [&](int64_t mask) {
    return binary(BinaryOp::bit_and, quadrant, int_constant(x, format, mask));
  };
  Expr is_odd = ne(bit(1), int_constant(x, format, 0));
  int sign_shift = format.is_f32 ? 30 : 62;
  Expr sign = shifted_left(bit(2), int_constant(x, format, sign_shift));
  return float_of(binary(BinaryOp::bit_xor, bits_of(select(is_odd, cosine, sine)), sign));
}

}  // namespace

Expr is_large(Expr x, bool has_fma) {
  const Format& format = format_of(x);
  Expr bits = bits_of(abs(x));
  Expr least = int_constant(x, format, has_fma ? kLargeF32 : kLargeShortF32);
  return logical_and(le(least, bits), lt(bits, int_constant(x, format, kInfinityF32)));
}

Expr sin(Expr x, bool has_fma) {
  return select(eq(x, constant_like(x, 0)), x, sin_or_cos(x, 0, has_fma));
}
Expr cos(Expr x, bool has_fma) { return sin_or_cos(x, 1, has_fma); }

}  // namespace lathe::loop::vector_math
