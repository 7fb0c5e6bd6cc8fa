// Functions that the loop IR does not have, as formulas (see formula.h).
#include "ir/op/formula.h"

#include <cmath>

namespace lathe::loop {

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
  const Expr result = offset + reduced + reduced * z * p / q;
  return select(lt(x, constant_like(x, 0)), -result, result);
}

Expr atan2(Expr y, Expr x) {
  const Expr zero = constant_like(x, 0);
  const Expr half_turn = select(lt(y, zero), -M_PI, constant_like(x, M_PI));
  const Expr angle = atan(y / x) + select(lt(x, zero), half_turn, zero);
  return select(eq(y, zero), select(lt(x, zero), half_turn, zero), angle);
}

}  // namespace lathe::loop
