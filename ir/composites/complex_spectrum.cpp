// Singular values and eigenvalues of complex matrices: reflections make them bidiagonal or
// tridiagonal, with real diagonals, and what those have reals do.
#include "ir/op/complex.h"
#include "ir/op/matrix.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

enum BandedForm : int64_t { kBidiagonal = 1, kTridiagonal = 2 };  // of complex_householder

// Q C for a matrix of C's, of the reflections whose vectors and taus these are.
Term times_q(const Aten& aten, Term vectors, Term tau, Term c) {
  return aten("ormqr", {vectors, tau, c});
}

// The same where the first reflection leaves the first row: one is there.
Term times_inner_q(const Aten& aten, Term vectors, Term tau, Term c) {
  const Dim n = Aten::size(c, -2);
  const auto behind_first = [&](Term x, int64_t dim) {
    return aten("slice.Tensor", {x, dim, 1, Aten::size(x, dim)});
  };
  const Term inner = times_q(aten, behind_first(aten("slice.Tensor", {vectors, -1, 0, n - 1}), -2),
                             aten("slice.Tensor", {tau, -1, 0, n - 1}), behind_first(c, -2));
  const Term first = aten("slice.Tensor", {c, -2, 0, 1});
  return aten("cat", {std::vector<Term>{complex_of(aten, parts(aten, first)), inner}, -2});
}

struct Reflected {
  Term packed, tau, tau_right;
  Term diagonal, beside;  // real
};
Reflected reflected_to(const Aten& aten, Term a, BandedForm form) {
  const Term all = complex_of(
      aten, apply("complex_householder", {parts(aten, a)}, {{"form", static_cast<int64_t>(form)}}));
  const Dim rows = Aten::size(a, -2);
  const Term packed = aten("slice.Tensor", {all, -2, 0, rows});
  const auto diagonal = [&](int64_t offset) {
    return aten("real", {aten("diagonal", {packed, offset, -2, -1})});
  };
  return {packed, aten("select.int", {all, -2, rows}), aten("select.int", {all, -2, rows + 1}),
          diagonal(0), diagonal(form == kBidiagonal ? 1 : -1)};
}

Term banded(const Aten& aten, const Reflected& from, int64_t offset) {
  return aten("add.Tensor", aten("diag_embed", {from.diagonal}),
              aten("diag_embed", {from.beside, offset}));
}

bool has_known_sizes(Term a) {
  return Aten::size(a, -2).is_const() && Aten::size(a, -1).is_const();
}

// U, S and V^H, of a matrix that has as many rows as columns at least.
std::vector<Term> decomposed(const Aten& aten, Term a, bool is_full, bool has_vectors) {
  const Dim m = Aten::size(a, -2), n = Aten::size(a, -1);
  const Term none = aten("new_zeros", {a, Dims{0}});
  if (n == Dim(0)) {  // nothing to reflect
    const Term u = aten("eye.m", {m, is_full ? m : n, a.dtype()});
    const Term all = aten("expand", {u, with_matrix(a.shape(), m, is_full ? m : n)});
    Shape values = a.shape();
    values.erase(values.end() - 2);
    return {complex_of(aten, parts(aten, all)), aten.full(values, 0, a.dtype()),
            aten("new_zeros", {a, with_matrix(a.shape(), n, n)})};
  }
  const Reflected made = reflected_to(aten, a, kBidiagonal);
  const std::vector<Term> real =
      aten.all("_linalg_svd", {banded(aten, made, 1), false, has_vectors});
  if (!real[0] || !has_vectors) return {none, real[1], none};
  // Ones below U's, for the columns that belong to no value.
  Term u = real[0];
  const Dim more = m - n;
  if (more != Dim(0)) {
    u = aten("constant_pad_nd", {u, Shape{0, is_full ? more : Dim(0), 0, more}});
    const Term ones = aten("eye.m", {m, Aten::size(u, -1), a.dtype()});
    const Term is_behind =
        aten("ge.Tensor", {aten.arange(Aten::size(u, -1)), size_like(aten.arange(1), n)});
    u = aten("where.self", {is_behind, ones, u});
  }
  const Term from_right =
      times_inner_q(aten, turned(aten, made.packed), made.tau_right, turned(aten, real[2]));
  return {times_q(aten, made.packed, made.tau, u), real[1], adjoint(aten, from_right)};
}

constexpr auto kComplexSvd = [](const Aten& aten) -> std::vector<Term> {
  const Term a = aten.tensor("A"), none = aten.null();
  if (a.rank() < 2 || !has_known_sizes(a))
    return {aten.fail(code::kUnsupported, "'" + aten.call().target +
                                              "' of complex numbers needs matrices of known sizes"),
            none, none};
  const bool is_wide = Aten::size(a, -2).value() < Aten::size(a, -1).value();
  std::vector<Term> all =
      decomposed(aten, is_wide ? adjoint(aten, a) : a, aten.call().bool_attr("full_matrices"),
                 aten.call().bool_attr("compute_uv", true));
  if (!is_wide || !aten.call().bool_attr("compute_uv", true)) return all;
  return {adjoint(aten, all[2]), all[1], adjoint(aten, all[0])};
};

// Eigenvalues and vectors; the latter null where they are not asked for.
std::vector<Term> eigen(const Aten& aten, bool has_vectors) {
  const ImportCall& call = aten.call();
  const std::string triangle = call.string_attr("UPLO");
  const Term a = aten.tensor(call.schema->args.front().name);
  if (a.rank() < 2 || !has_known_sizes(a))
    return {aten.fail(code::kUnsupported,
                      "'" + call.target + "' of complex numbers needs matrices of known sizes"),
            aten.null()};
  const Term whole = hermitian(aten, a, triangle == "U" || triangle == "u");
  if (Aten::size(a, -1) == Dim(0)) return {aten("real", {main_diagonal(aten, whole)}), whole};
  const Reflected made = reflected_to(aten, whole, kTridiagonal);
  const Term real = banded(aten, made, -1);
  if (!has_vectors) return {aten("linalg_eigvalsh", {real}), aten.null()};
  const std::vector<Term> all = aten.all("linalg_eigh", {real});
  return {all[0], times_inner_q(aten, made.packed, made.tau, all[1])};
}

constexpr auto kComplexEigh = [](const Aten& aten) { return eigen(aten, true); };
constexpr auto kComplexEigvalsh = [](const Aten& aten) { return eigen(aten, false)[0]; };
constexpr auto kComplexEither = [](const Aten& aten) -> std::vector<Term> {
  const bool has_vectors = aten.call().bool_attr("compute_v", true);
  std::vector<Term> all = eigen(aten, has_vectors);
  if (!has_vectors) all[1] = aten("new_zeros", {aten.tensor("A"), Dims{0}});
  return all;
};

}  // namespace

std::vector<Import> import_complex_spectrum() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::complex});
  };
  as("_linalg_svd", composed<kComplexSvd>);
  as("linalg_eigh", composed<kComplexEigh>);
  as("_linalg_eigh", composed<kComplexEither>);
  as("linalg_eigvalsh", composed<kComplexEigvalsh>);
  return imports;
}

}  // namespace lathe
