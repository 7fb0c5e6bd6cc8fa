// Replaces mathematical functions by arithmetic that every target has.
#pragma once
#include "ir/loop/node.h"

namespace lathe::loop {

// Rewrites exp, expm1, log, log1p, sin, cos, tanh, erf, rsqrt and pow of the whole kernel into
// fma, division, sqrt, comparison, select and integer operations of any number of lanes, in the
// operand's dtype (halves through f32). Infinities, zeros and NaN give what the C library gives
// (NaN payloads aside).
//
// Error bounds in ULP, measured against exact values over dense samples (expand_math_test.cpp):
//
//            f32    f64    remarks
//   exp      1.0    1.0    subnormal results are rounded once
//   expm1    1.5    2.0
//   log      1.0    1.0    subnormal operands included
//   log1p    1.0    1.0
//   tanh     2.5    2.5
//   erf      1.2    1.2
//   sin cos  1.6    1.6    for |x| up to 2e5 in f32 and 1e9 in f64; beyond, accuracy is lost
//                          step by step, but the result stays in [-1, 1]
//   rsqrt    1.5    1.5    1/sqrt(x)
//   pow      1.1    1.1    over the whole range; integers by squaring, exactly
//
// Powers with one of the exponents -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4 become products, quotients and
// roots (error up to 2; the root of -inf is NaN and that of -0 is -0).
// New expressions go to the kernel's pool: kernels that share one must not be expanded at once.
void expand_math(Kernel& kernel);

}  // namespace lathe::loop
