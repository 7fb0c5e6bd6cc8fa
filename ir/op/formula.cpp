// Functions that the loop IR does not have, as formulas (see formula.h). Odd functions are formed
// of |x| and get its sign at the end, zeros too.
#include "ir/op/formula.h"

#include <cmath>

#include "ir/loop/vector_math.h"

namespace lathe::loop {
namespace {

using vector_math::copy_sign;
using vector_math::format_of;

constexpr double kNoSquare = 0x1p60;  // x * x + 1 is x * x, and does not overflow below

// e^x / 2 without e^x, which may overflow: e^(x - shift) * factor. The shift has so few bits that
// the difference is exact for x >= 1/2, and is a little more than ln2, so that the power does not
// overflow before the half does.
struct Halving {
  double shift;
  double factor;  // e^shift / 2
};
Halving halving_of(Expr x) {
  if (format_of(x).is_f32) return {0x1.62e5p-1, 0x1.000068p+0};
  return {0x1.62e42fefa4p-1, 0x1.0000000000308p+0};
}

// log(1 + t), plus ln2 where x is so large that t is x and stands for 2x.
Expr log1p_of_double(Expr x, Expr t) {
  const Expr is_large = lt(constant_like(x, kNoSquare), x);
  return log1p(select(is_large, x, t)) + select(is_large, M_LN2, constant_like(x, 0));
}

}  // namespace

Expr exp2(Expr x) { return vector_math::exp2(x); }
Expr log2(Expr x) { return vector_math::log2(x); }
Expr log10(Expr x) { return vector_math::log10(x); }

// expm1 keeps the small values that e^x - e^-x would cancel.
Expr sinh(Expr x) {
  const Expr a = abs(x);
  const Halving halving = halving_of(x);
  const Expr is_large = lt(constant_like(x, 40), a);
  const Expr e = expm1(select(is_large, a - halving.shift, a));
  return copy_sign(select(is_large, e * halving.factor, (e + e / (e + 1.0)) * 0.5), x);
}

Expr cosh(Expr x) {
  const Halving halving = halving_of(x);
  const Expr half = exp(abs(x) - halving.shift) * halving.factor;
  return half + 0.25 / half;
}

Expr asinh(Expr x) {
  const Expr a = abs(x);
  return copy_sign(log1p_of_double(a, a + a * a / (sqrt(a * a + 1.0) + 1.0)), x);
}

Expr acosh(Expr x) {
  const Expr t = x - 1.0;
  const Expr result = log1p_of_double(x, t + sqrt(t * (t + 2.0)));
  return select(le(constant_like(x, 1), x), result, NAN);
}

Expr atanh(Expr x) {
  const Expr a = abs(x);
  return copy_sign(log1p(a * 2.0 / (1.0 - a)) * 0.5, x);
}

Expr tan(Expr x) { return unary(UnaryOp::sin, x) / unary(UnaryOp::cos, x); }

// 1 - x is exact where 1 - x * x would cancel.
Expr asin(Expr x) { return atan(x / sqrt((1.0 - x) * (x + 1.0))); }
Expr acos(Expr x) { return atan(sqrt((1.0 - x) / (x + 1.0))) * 2.0; }

// After Cephes: |x| is reduced to at most 0.66, where a rational function is exact to a few ULP.
Expr atan(Expr x) {
  const Expr magnitude = abs(x);
  const Expr is_large = lt(constant_like(x, 2.414213562373095), magnitude);  // tan(3 pi / 8)
  const Expr is_medium = lt(constant_like(x, 0.66), magnitude);
  const Expr reduced = select(is_large, -1.0 / magnitude,
                              select(is_medium, (magnitude - 1.0) / (magnitude + 1.0), magnitude));
  const Expr offset = select(is_large, constant_like(x, M_PI_2),
                             select(is_medium, constant_like(x, M_PI_4), constant_like(x, 0)));
  const Expr z = reduced * reduced;
  const Expr p = (((z * -8.750608600031904122785e-1 - 1.615753718733365076637e1) * z -
                   7.500855792314704667340e1) *
                      z -
                  1.228866684490136173410e2) *
                     z -
                 6.485021904942025371773e1;
  const Expr q = ((((z + 2.485846490142306297962e1) * z + 1.650270098316988542046e2) * z +
                   4.328810604912902668951e2) *
                      z +
                  4.853903996359136964868e2) *
                     z +
                 1.945506571482613964425e2;
  return copy_sign(offset + reduced + reduced * z * p / q, x);
}

// The angle in the first octant, and then in that of the point.
Expr atan2(Expr y, Expr x) {
  const Expr a = abs(x), b = abs(y);
  const Expr larger = max(a, b);
  // 0 / 0 and inf / inf
  const Expr ratio = select(eq(a, b), cast(lt(constant_like(x, 0), larger), x->dtype),
                            min(a, b) / larger);
  const Expr octant = atan(ratio);
  const Expr quadrant = select(lt(a, b), M_PI_2 - octant, octant);
  const Expr is_left = lt(copy_sign(constant_like(x, 1), x), constant_like(x, 0));
  return copy_sign(select(is_left, M_PI - quadrant, quadrant), y);
}

}  // namespace lathe::loop
