// Orthogonal factors, from Householder's vectors.
#include "ir/op/complex.h"
#include "ir/op/matrix.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Q C for Q = (I - tau_1 v_1 v_1^H) (I - tau_2 v_2 v_2^H) ..., or Q^H C. All reflections at once:
// Q is I - V S^-1 V^H, where S has V^H V above its diagonal and 1/tau on it. One that does nothing
// has a v of zeros instead, so that S has no infinity.
// Of the first columns of the identity, V^H C is columns of V^H.
Term reflected(const Aten& aten, Term vectors, Term tau, Term c, bool is_turned,
               bool is_identity = false) {
  if (vectors.rank() < 2 || tau.rank() + 1 != vectors.rank() || c.rank() != vectors.rank())
    return aten.fail(code::kShapeMismatch,
                     "'" + aten.call().target + "' needs matrices, and a tau for each column");
  const DType dtype = vectors.dtype();
  const Dim rows = Aten::size(vectors, -2), count = Aten::size(tau, -1);
  const Term is_none = aten("eq.Scalar", {tau, 0});
  const auto unless_none = [&](Term condition, double otherwise, Term x) {
    return aten("where.self", {condition, aten.scalar(otherwise, dtype), x});
  };
  const Term ones = aten("eye.m", {rows, count, dtype});
  const Term below = aten("tril", {aten("slice.Tensor", {vectors, -1, 0, count}), -1});
  const Term v = unless_none(aten("unsqueeze", {is_none, -2}), 0, aten("add.Tensor", below, ones));
  const Term turned = adjoint(aten, v);
  const Term inverse = unless_none(is_none, 1, aten("reciprocal", tau));
  const Term s = aten("add.Tensor", aten("triu", {aten("matmul", turned, v), 1}),
                      aten("diag_embed", {inverse, 0, -2, -1}));
  const Term along = is_identity ? aten("slice.Tensor", {turned, -1, 0, Aten::size(c, -1)})
                                 : aten("matmul", turned, c);
  const Term x = is_turned ? aten("linalg_solve_triangular", {adjoint(aten, s), along, false})
                           : aten("linalg_solve_triangular", {s, along, true});
  return aten("sub.Tensor", c, aten("matmul", v, x));
}

// The first columns of Q.
Term columns_of_q(const Aten& aten, Term vectors, Term tau, const Dim& columns) {
  if (vectors.rank() < 2) return reflected(aten, vectors, tau, vectors, false);
  const Dim rows = Aten::size(vectors, -2);
  const Term ones = aten("eye.m", {rows, columns, vectors.dtype()});
  const Term c = expand(ones, with_matrix(vectors.shape(), rows, columns));
  return reflected(aten, vectors, tau, c, false, true);
}

constexpr auto kHouseholderProduct = [](const Aten& aten) {
  const std::vector<SchemaArg>& args = aten.call().schema->args;
  const Term vectors = aten.tensor(args[0].name);
  const Dim columns = vectors.rank() < 1 ? Dim(1) : Aten::size(vectors, -1);
  return columns_of_q(aten, vectors, aten.tensor(args[1].name), columns);
};

constexpr auto kOrmqr = [](const Aten& aten) {
  const bool is_left = aten.call().bool_attr("left", true);
  const bool is_turned = aten.call().bool_attr("transpose");
  const Term c = aten.tensor("input3"), vectors = aten.tensor("self"), tau = aten.tensor("input2");
  if (is_left) return reflected(aten, vectors, tau, c, is_turned);
  return adjoint(aten, reflected(aten, vectors, tau, adjoint(aten, c), !is_turned));
};

// "reduced", "complete", or "r" without Q.
std::vector<Term> triangular(const Aten& aten, Term a, const std::string& mode) {
  const std::vector<Term> packed = aten.all("geqrf", {a});
  if (!packed[0]) return {packed[0], packed[0]};
  if (mode != "reduced" && mode != "complete" && mode != "r") {
    const Term none =
        aten.fail(code::kBadModel, "'linalg_qr' has the modes reduced, complete and r");
    return {none, none};
  }
  const Dim rows = Aten::size(a, -2), count = Dim::min(rows, Aten::size(a, -1));
  const bool is_whole = mode == "complete";
  const Term r = is_whole ? packed[0] : aten("slice.Tensor", {packed[0], -2, 0, count});
  const Term q = mode == "r" ? aten("new_zeros", {a, Dims{0}})
                             : columns_of_q(aten, packed[0], packed[1], is_whole ? rows : count);
  return {q, aten("triu", {r})};
}

}  // namespace

std::vector<Import> import_reflection() {
  return {
      {.schema = "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
       .build = composed<[](const Aten& aten) {
         const std::string mode = aten.call().string_attr("mode");
         return triangular(aten, aten.tensor("A"), mode);
       }>},
      {.schema = "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
       .build = composed<[](const Aten& aten) {
         const bool is_some = aten.call().bool_attr("some", true);
         return triangular(aten, aten.tensor("self"), is_some ? "reduced" : "complete");
       }>},
      {.schema = "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
       .build = composed<kHouseholderProduct>},
      {.schema = "orgqr(Tensor self, Tensor input2) -> Tensor",
       .build = composed<kHouseholderProduct>},
      {.schema = "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool "
                 "transpose=False) -> Tensor",
       .build = composed<kOrmqr>},
  };
}

}  // namespace lathe
