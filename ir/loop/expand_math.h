// Replaces mathematical functions by arithmetic that every target has.
#pragma once
#include "ir/loop/node.h"

namespace lathe::loop {

// Rewrites exp, expm1, log, log1p, sin, cos, tanh, erf, rsqrt and pow of the whole kernel into
// fma, division, sqrt, comparison, select and integer operations of any number of lanes, in the
// operand's dtype (halves through f32). Infinities, zeros and NaN give what the C library gives
// (NaN payloads aside). `has_fma`: the target's fma is one rounding.
//
// The errors in f32 stand in tests/math/ulp.txt. In f64, in ULP, over dense samples
// (expand_math_test.cpp): exp, log and log1p 1.0, expm1 2.0, tanh 2.5, erf 1.2, rsqrt 1.5, pow 1.1,
// sin and cos 1.6 for |x| up to 1e9 (beyond, accuracy is lost step by step, and the result stays in
// [-1, 1]).
//
// Powers with one of the exponents -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4 become products, quotients and
// roots (error up to 2; the root of -inf is NaN and that of -0 is -0).
// New expressions go to the kernel's pool: kernels that share one must not be expanded at once.
void expand_math(Kernel& kernel, bool has_fma = true);

}  // namespace lathe::loop
