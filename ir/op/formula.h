// Formulas that are written once and used twice: with Terms they build graph code, with loop
// expressions they lower. These are the loop half of the functions that term.h has for Terms.
#pragma once
#include "ir/loop/pool.h"
#include "ir/op/term.h"

namespace lathe::loop {

inline Expr min(Expr a, double b) { return min(a, constant_like(a, b)); }
inline Expr max(Expr a, double b) { return max(a, constant_like(a, b)); }
inline Expr lt(Expr a, double b) { return lt(a, constant_like(a, b)); }
inline Expr gt(Expr a, double b) { return lt(constant_like(a, b), a); }
inline Expr le(Expr a, double b) { return le(a, constant_like(a, b)); }
inline Expr ge(Expr a, double b) { return le(constant_like(a, b), a); }
inline Expr eq(Expr a, double b) { return eq(a, constant_like(a, b)); }
inline Expr select(Expr condition, Expr if_true, double if_false) {
  return select(condition, if_true, constant_like(if_true, if_false));
}
inline Expr select(Expr condition, double if_true, Expr if_false) {
  return select(condition, constant_like(if_false, if_true), if_false);
}
inline Expr expm1(Expr x) { return unary(UnaryOp::expm1, x); }
inline Expr log1p(Expr x) { return unary(UnaryOp::log1p, x); }
// Errors of the functions below: tests/math/ulp.txt. Of f32 and f64.
Expr exp2(Expr x);
Expr log2(Expr x);
Expr log10(Expr x);
Expr sinh(Expr x);
Expr cosh(Expr x);
Expr asinh(Expr x);
Expr acosh(Expr x);
Expr atanh(Expr x);
Expr tan(Expr x);
Expr asin(Expr x);
Expr acos(Expr x);
Expr atan(Expr x);
// The angle of the point (x, y), as the C library has it for infinities and signed zeros.
Expr atan2(Expr y, Expr x);
inline Expr sigmoid(Expr x) { return 1.0 / (exp(-x) + 1.0); }

}  // namespace lathe::loop
