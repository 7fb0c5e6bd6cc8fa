// The meaning of every scalar operation, once: constant folding and the evaluator both use it.
//
// Integers are kept wrapped to their dtype (sign-extended; u8 and bool zero-extended), floats as
// the double that equals the dtype's value.
#pragma once
#include <cstdint>

#include "ir/loop/node.h"

namespace lathe::loop {

union Scalar {
  int64_t i;  // integer dtypes and bool
  double f;   // float dtypes
};
inline Scalar int_scalar(int64_t value) {
  Scalar s;
  s.i = value;
  return s;
}
inline Scalar float_scalar(double value) {
  Scalar s;
  s.f = value;
  return s;
}

// Two's complement arithmetic without signed overflow.
inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// An integer wrapped to the dtype's width; bool: 0 or 1.
int64_t wrap_integer(DType dtype, int64_t value);
int dtype_bits(DType dtype);
inline bool is_compare(BinaryOp op) { return op >= BinaryOp::eq; }

// `dtype` is that of the operands. Transcendental functions are those of the C library, rounded:
// what the evaluator means by them, not what a target's polynomials give.
Scalar apply(UnaryOp op, DType dtype, Scalar x);
Scalar apply(BinaryOp op, DType dtype, Scalar a, Scalar b);
Scalar apply_fma(DType dtype, Scalar a, Scalar b, Scalar c);
// Of the pairs of bf16 in the words a and b: the first product joins the sum first.
Scalar apply_pair_dot(Scalar a, Scalar b, Scalar c);
// Not for argmax and argmin.
Scalar apply(ReduceOp op, DType dtype, Scalar a, Scalar b);
// Floats truncate to i64 (saturated; NaN is 0) and wrap from there; anything but 0 is true.
Scalar convert(DType from, DType to, Scalar x);
// Between dtypes of one width. NaN payloads are not kept.
Scalar convert_bits(DType from, DType to, Scalar x);

}  // namespace lathe::loop
