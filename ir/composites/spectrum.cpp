// Singular values, and what is read off them.
#include <cmath>

#include "ir/op/complex.h"
#include "ir/op/matrix.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Term singular_values(const Aten& aten, Term a) {
  return aten.all("_linalg_svd", {a, false, false})[1];
}

constexpr auto kLinalgSvd = [](const Aten& aten) {
  return aten.all("_linalg_svd", {aten.tensor("A"), aten.call().bool_attr("full_matrices", true)});
};

constexpr auto kSvdOfOld = [](const Aten& aten) -> std::vector<Term> {
  const Term a = aten.tensor("self");
  const bool is_some = aten.call().bool_attr("some", true);
  if (aten.call().bool_attr("compute_uv", true)) {
    std::vector<Term> parts = aten.all("_linalg_svd", {a, !is_some});
    parts[2] = adjoint(aten, parts[2]);
    return parts;
  }
  const Term values = singular_values(aten, a);
  if (!values) return {values, values, values};
  const auto zeros = [&](int64_t dim) {
    return aten("new_zeros", {a, with_matrix(a.shape(), Aten::size(a, dim), Aten::size(a, dim))});
  };
  return {zeros(-2), values, zeros(-1)};
};

// --- what counts as zero

// The number in a call, as a tensor; null where it is left out.
Term bound_of(const Aten& aten, std::string_view arg, DType dtype) {
  if (aten.call().schema->find(arg) == nullptr || aten.call().is_none(arg)) return aten.null();
  if (const Term given = aten.tensor(arg)) return aten("to.dtype", {given, dtype});
  return aten.scalar(aten.call().float_attr(arg), dtype);
}

// Values up to it are none: the larger of `absolute` and `relative` of the largest. Where neither
// is given, as many roundings as the matrix is large; `most` has a dim more than the bounds.
Term zero_bound(const Aten& aten, Term a, Term most, Term absolute, Term relative) {
  const auto behind = [&](Term x) { return x.rank() > 0 ? aten("unsqueeze", {x, -1}) : x; };
  if (!relative) {
    const double epsilon = a.dtype() == DType::f64 ? 0x1p-52 : 0x1p-23;
    const Dim size = Dim::max(Aten::size(a, -2), Aten::size(a, -1));
    relative = size_like(a, size) * epsilon;
    if (absolute) relative = select(gt(absolute, 0), constant_like(a, 0), relative);
  }
  const Term bound = behind(relative) * most;
  return absolute ? aten("maximum", {behind(absolute), bound}) : bound;
}

// Magnitudes of eigenvalues, or singular values.
Term magnitudes(const Aten& aten, Term a) {
  if (aten.call().bool_attr("hermitian")) return abs(aten("linalg_eigvalsh", {a}));
  return singular_values(aten, a);
}

bool has_no_elements(Term a) {
  for (const Dim& dim : a.shape())
    if (dim == Dim(0)) return true;
  return false;
}

Term rank_of(const Aten& aten, Term absolute, Term relative) {
  const Term a = aten.tensor(aten.call().schema->args.front().name);
  const Term values = magnitudes(aten, a);
  if (!values) return values;
  if (has_no_elements(values))
    return aten("sum.dim_IntList", {aten("to.dtype", {values, DType::i64}), Dims{-1}});
  const Term most = aten("amax", {values, Dims{-1}, true});
  const Term bound = zero_bound(aten, a, most, absolute, relative);
  return aten("sum.dim_IntList", {aten("gt.Tensor", {values, bound}), Dims{-1}});
}

constexpr auto kRank = [](const Aten& aten) {
  const DType dtype = aten.tensor(aten.call().schema->args.front().name).dtype();
  return rank_of(aten, bound_of(aten, "atol", dtype), bound_of(aten, "rtol", dtype));
};
constexpr auto kRankOfOld = [](const Aten& aten) {
  const DType dtype = aten.tensor(aten.call().schema->args.front().name).dtype();
  return rank_of(aten, bound_of(aten, "tol", dtype), aten.scalar(0, dtype));
};

Term pseudo_inverse(const Aten& aten, Term absolute, Term relative) {
  const Term a = aten.tensor("self");
  if (a.rank() >= 2 && has_no_elements(a)) return aten("zeros_like", turned(aten, a));
  const bool is_symmetric = aten.call().bool_attr("hermitian");
  const std::vector<Term> parts = aten.all(is_symmetric ? "linalg_eigh" : "_linalg_svd", {a});
  if (!parts[0]) return parts[0];
  const Term u = is_symmetric ? parts[1] : parts[0];
  const Term values = is_symmetric ? parts[0] : parts[1];
  const Term v = is_symmetric ? parts[1] : adjoint(aten, parts[2]);
  const Term most = aten("amax", {abs(values), Dims{-1}, true});
  const Term bound = zero_bound(aten, a, most, absolute, relative);
  const Term is_any = aten("gt.Tensor", {abs(values), bound});
  const Term inverse = select(is_any, 1.0 / values, 0);
  const Term scaled = aten("mul.Tensor", v, aten("unsqueeze", {inverse, -2}));
  return aten("matmul", scaled, adjoint(aten, u));
}

constexpr auto kPinv = [](const Aten& aten) {
  const DType dtype = aten.tensor("self").dtype();
  return pseudo_inverse(aten, bound_of(aten, "atol", dtype), bound_of(aten, "rtol", dtype));
};
constexpr auto kPinvOfOld = [](const Aten& aten) {
  const DType dtype = aten.tensor("self").dtype();
  return pseudo_inverse(aten, aten.scalar(0, dtype), bound_of(aten, "rcond", dtype));
};

// --- how far from singular

constexpr auto kCondition = [](const Aten& aten) -> Term {
  const Term a = aten.tensor("self");
  const Attr order = aten.attr("p");
  const bool is_named = std::holds_alternative<std::string>(order);
  const double p = aten.call().is_none("p") ? 2 : is_named ? 0 : aten.call().float_attr("p");
  if (std::fabs(p) == 2) {
    const Term values = singular_values(aten, a);
    if (!values) return values;
    const Term most = aten("amax", {values, Dims{-1}}), least = aten("amin", {values, Dims{-1}});
    return p > 0 ? most / least : least / most;
  }
  const char* norm = is_named ? "linalg_matrix_norm.str_ord" : "linalg_matrix_norm";
  const std::vector<Term> inverse = aten.all("linalg_inv_ex", {a});
  if (!inverse[0]) return inverse[0];
  const Term product = aten(norm, {a, order}) * aten(norm, {inverse[0], order});
  return select(gt(inverse[1], 0), constant_like(product, INFINITY), product);
};

}  // namespace

std::vector<Import> import_spectrum() {
  return {
      {.schema = "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, "
                 "Tensor S, Tensor Vh)",
       .build = composed<kLinalgSvd>},
      {.schema = "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, "
                 "Tensor V)",
       .build = composed<kSvdOfOld>},
      {.schema = "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
       .build = composed<[](const Aten& aten) { return singular_values(aten, aten.tensor("A")); }>},
      {.schema = "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? "
                 "rtol=None, bool hermitian=False) -> Tensor",
       .build = composed<kRank>},
      {.schema = "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? "
                 "rtol=None, bool hermitian=False) -> Tensor",
       .build = composed<kRank>},
      {.schema = "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
       .build = composed<kRankOfOld>},
      {.schema = "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> "
                 "Tensor",
       .build = composed<kRankOfOld>},
      {.schema = "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? "
                 "rtol=None, bool hermitian=False) -> Tensor",
       .build = composed<kPinv>},
      {.schema = "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
                 "bool hermitian=False) -> Tensor",
       .build = composed<kPinv>},
      {.schema = "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
       .build = composed<kPinvOfOld>},
      {.schema = "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> "
                 "Tensor",
       .build = composed<kPinvOfOld>},
      {.schema = "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
       .build = composed<kPinvOfOld>},
      {.schema = "linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
       .build = composed<kCondition>},
      {.schema = "linalg_cond.p_str(Tensor self, str p) -> Tensor", .build = composed<kCondition>},
  };
}

}  // namespace lathe
