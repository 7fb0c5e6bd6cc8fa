// Numbers of 8 bits while a model is imported: bytes.
//
// A tensor of float8 is one of u8 in the graph, as it lies in memory; what its bytes mean the
// builder knows (Builder::encoding). PyTorch computes in no such dtype: it casts them, moves them
// and gives them to products with scales. Casts become arithmetic on the bits, which is fused into
// what reads or makes them; moves are those of bytes; everything else is refused by name.
//
// Formats: e4m3fn and e5m2 of "FP8 formats for deep learning" (arXiv 2209.05433); fnuz, with one
// zero, one NaN and no infinity, of arXiv 2206.02915; e8m0fnu, powers of two, of the OCP
// microscaling specification. Conversions round as PyTorch 2.13's (c10/util/Float8_*.h): to the
// nearest, ties to even. What is too large becomes the largest number of e4m3fn, infinity in e5m2,
// and NaN in the others.
#pragma once
#include "ir/op/composite.h"

namespace lathe {

// The bytes themselves, u8 of the same shape, and what they stand for again.
Term bytes_of(const Aten& aten, Term x);
Term float8_of(const Aten& aten, Term bytes, Encoding encoding);

// Numbers of f32, each exact; and the nearest of the format, of reals of any dtype.
Term from_float8(const Aten& aten, Term x);
Term to_float8(const Aten& aten, Term x, Encoding encoding);

// For what moves elements: the same call on bytes. Numbers in it that are not 0, and calls of
// `on_floats`, go by way of f32.
Built on_bytes(Builder& builder, const ImportCall& call);
Built on_floats(Builder& builder, const ImportCall& call);

}  // namespace lathe
