// Complex numbers while a model is imported: pairs of reals.
//
// A complex tensor of shape S is a real one of shape S + [2] in the graph, laid out as
// torch.view_as_real lays it out, so that inputs, weights and outputs are bound where they are. The
// builder knows which values are such pairs, a Term tells of them what PyTorch says (their shape
// is S), and a call that one takes part in goes to the table's entries for complex numbers, which
// say it in calls on reals. Nothing behind the importer knows complex numbers: passes, kernels and
// targets need nothing for them, and a product of complex matrices is one of real ones.
#pragma once
#include "ir/op/composite.h"

namespace lathe {

struct Pair {
  Term re;
  Term im;
};

// torch.view_as_real: reals of shape S + [2]. Of reals: the same with 0 for what is imaginary.
Term parts(const Aten& aten, Term x);
// torch.view_as_complex: numbers of the two last elements, or none where the last dim is not 2.
Term complex_of(const Aten& aten, Term parts);

Pair pair(const Aten& aten, Term x);
Term join(const Aten& aten, Term re, Term im);
inline Term join(const Aten& aten, Pair x) { return join(aten, x.re, x.im); }
// A real tensor that scales pairs.
Term beside_pairs(const Aten& aten, Term x);

// An argument as a number or tensor, complex or not; `part` is the dtype of a number's parts.
Term operand(const Aten& aten, std::string_view arg, DType part);

// Matrices of complex numbers as real ones with twice the rows: those of real parts, and under each
// that of imaginary ones. And with twice the columns too, each number a + bi as [[a, -b], [b, a]]:
// products, inverses and Cholesky's factors of such matrices are such ones again, their singular
// values and eigenvalues are there twice, and half of their columns say it all.
Term doubled_rows(const Aten& aten, Term x);
Term doubled(const Aten& aten, Term x);
Term from_doubled_rows(const Aten& aten, Term x);
Term from_doubled(const Aten& aten, Term x);
// Every other element of the last dim.
Term every_other(const Aten& aten, Term x);

// Dims -2 and -1 swapped, of either kind of number; and conjugated, which reals stay without.
Term turned(const Aten& aten, Term x);
Term adjoint(const Aten& aten, Term x);
// The Hermitian matrix whose upper or lower triangle is x's, with the real part of its diagonal.
Term hermitian(const Aten& aten, Term x, bool is_upper);

// For what moves elements or acts on each part alone: the same call on the pairs. Dims that count
// from the end skip that of the pairs, sizes get it.
Built on_parts(Builder& builder, const ImportCall& call);

}  // namespace lathe
