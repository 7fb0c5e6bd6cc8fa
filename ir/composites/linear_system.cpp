// Linear systems: what is made of triangular factors and of solving with them. One without solution
// is no error: it gives what elimination leaves, infinities or NaN; `info` says where it stopped.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "ir/op/complex.h"
#include "ir/op/matrix.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// One matrix of ones on the diagonal, as large as those of `like`.
Term identity_like(const Aten& aten, Term like) {
  return aten("expand", {aten("eye", {Aten::size(like, -1), like.dtype()}), like.shape()});
}

bool is_matrix(Term x) { return x.rank() >= 2; }

Term refuse_vector(const Aten& aten) {
  return aten.fail(code::kShapeMismatch,
                   "'" + aten.call().target + "' needs a tensor with at least 2 dims");
}

// --- positive definite

Term cholesky(const Aten& aten, std::string_view arg) {
  return aten("linalg_cholesky", {aten.tensor(arg), aten.call().bool_attr("upper")});
}

constexpr auto kCholeskyEx = [](const Aten& aten) -> std::vector<Term> {
  const Term factor = cholesky(aten, "self");
  if (!factor) return {factor, factor};
  Term diagonal = main_diagonal(aten, factor);
  if (factor.is_complex()) diagonal = aten("real", diagonal);
  const Term is_positive = aten("gt.Scalar", {diagonal, 0});
  return {factor, first_true(aten, aten("logical_not", {is_positive}))};
};

Term cholesky_solved(const Aten& aten, Term factor, Term b) {
  const bool is_upper = aten.call().bool_attr("upper");
  const auto solve = [&](Term a, Term x, bool upper) {
    return aten("linalg_solve_triangular", {a, x, upper});
  };
  const Term other = adjoint(aten, factor);
  if (is_upper) return solve(factor, solve(other, b, false), true);
  return solve(other, solve(factor, b, false), true);
}

constexpr auto kCholeskySolve = [](const Aten& aten) {
  return cholesky_solved(aten, aten.tensor("input2"), aten.tensor("self"));
};

constexpr auto kCholeskyInverse = [](const Aten& aten) {
  const Term factor = aten.tensor("self");
  if (!is_matrix(factor)) return refuse_vector(aten);
  return cholesky_solved(aten, factor, identity_like(aten, factor));
};

// --- by elimination

// The results of linalg_lu_factor_ex; null ones where it is refused.
std::vector<Term> factors(const Aten& aten, Term a, bool has_pivots = true) {
  return aten.all("linalg_lu_factor_ex", {a, has_pivots});
}

// Of square matrices alone.
std::vector<Term> square_factors(const Aten& aten, Term a) {
  if (is_matrix(a) && differ(Aten::size(a, -2), Aten::size(a, -1))) {
    const Term none = aten.fail(code::kShapeMismatch,
                                "'" + aten.call().target + "' needs batches of square matrices");
    return {none, none, none};
  }
  return factors(aten, a);
}

constexpr auto kLu = [](const Aten& aten) {
  const std::vector<Term> lu =
      factors(aten, aten.tensor("A"), aten.call().bool_attr("pivot", true));
  return aten.all("lu_unpack", {lu[0], lu[1]});
};

constexpr auto kLuWithInfo = [](const Aten& aten) {
  return factors(aten, aten.tensor("self"), aten.call().bool_attr("pivot", true));
};

constexpr auto kLuFactor = [](const Aten& aten) -> std::vector<Term> {
  std::vector<Term> lu = factors(aten, aten.tensor("A"), aten.call().bool_attr("pivot", true));
  lu.pop_back();
  return lu;
};

// The solution, LU, pivots and info. B may be of vectors: of one rank less, with A's own batch.
std::vector<Term> solved_system(const Aten& aten, Term a, Term b, bool is_left) {
  const std::vector<Term> lu = square_factors(aten, a);
  if (!lu[0]) return {lu[0], lu[0], lu[0], lu[0]};
  Shape rows = a.shape();
  rows.pop_back();
  const bool is_vector = b.rank() == 1 || (b.rank() + 1 == a.rank() && b.shape() == rows);
  if (is_vector) b = aten("unsqueeze", {b, -1});
  Term x = aten("linalg_lu_solve", {lu[0], lu[1], b, is_left});
  if (is_vector) x = aten("squeeze.dim", {x, -1});
  return {x, lu[0], lu[1], lu[2]};
}

std::vector<Term> solved_call(const Aten& aten) {
  return solved_system(aten, aten.tensor("A"), aten.tensor("B"),
                       aten.call().bool_attr("left", true));
}

constexpr auto kSolveEx = [](const Aten& aten) -> std::vector<Term> {
  const std::vector<Term> all = solved_call(aten);
  return {all[0], all[3]};
};

std::vector<Term> inverted(const Aten& aten, Term a) {
  if (!is_matrix(a)) return {refuse_vector(aten), aten.null()};
  const std::vector<Term> all = solved_system(aten, a, identity_like(aten, a), true);
  return {all[0], all[3]};
}

// --- determinants

// 1 or -1, as there is an even or odd number of rows that were swapped.
Term parity(const Aten& aten, Term pivots, DType dtype) {
  if (!pivots) return pivots;
  const Term own = aten("add.Scalar", {aten.arange(Aten::size(pivots, -1)), 1});
  const Term swaps = aten("sum.dim_IntList", {aten("ne.Tensor", {pivots, own}), Dims{-1}});
  const Term odd = aten("to.dtype", {aten("remainder.Scalar", {swaps, 2}), dtype});
  return 1.0 - odd * 2.0;
}

std::vector<Term> determinant(const Aten& aten) {
  const Term a = aten.tensor("A");
  const std::vector<Term> lu = square_factors(aten, a);
  if (!lu[0]) return {lu[0], lu[0], lu[0]};
  const Term product = aten("prod.dim_int", {main_diagonal(aten, lu[0]), -1});
  return {aten("mul.Tensor", product, parity(aten, lu[1], a.dtype())), lu[0], lu[1]};
}

// Its sign and the logarithm of its magnitude.
std::vector<Term> log_determinant(const Aten& aten, Term a) {
  const std::vector<Term> lu = square_factors(aten, a);
  if (!lu[0]) return {lu[0], lu[0], lu[0], lu[0]};
  const Term diagonal = main_diagonal(aten, lu[0]);
  const Term signs = aten("prod.dim_int", {aten("sgn", {diagonal}), -1});
  return {aten("mul.Tensor", signs, parity(aten, lu[1], a.dtype())),
          aten("sum.dim_IntList", {log(aten("abs", diagonal)), Dims{-1}}), lu[0], lu[1]};
}

template <size_t kCount>
constexpr auto kSlogdet = [](const Aten& aten) -> std::vector<Term> {
  std::vector<Term> all = log_determinant(aten, aten.tensor(aten.call().schema->args.front().name));
  all.resize(kCount, aten.null());
  return all;
};

constexpr auto kLogdet = [](const Aten& aten) {
  const std::vector<Term> all = log_determinant(aten, aten.tensor("self"));
  if (all[0].is_complex()) return aten("add.Tensor", aten("log", all[0]), all[1]);
  return select(lt(all[0], 0), constant_like(all[1], std::numeric_limits<double>::quiet_NaN()),
                all[1]);
};

// --- of tensors that are matrices over some of their dims

constexpr auto kTensorSolve = [](const Aten& aten) -> Term {
  Term a = aten.tensor("self"), b = aten.tensor("other");
  Dims order, last = aten.call().ints_attr("dims");
  for (int64_t& dim : last) dim = aten.dim(dim, a.rank());
  for (int64_t dim = 0; dim < a.rank(); ++dim)
    if (std::find(last.begin(), last.end(), dim) == last.end()) order.push_back(dim);
  order.insert(order.end(), last.begin(), last.end());
  if (order.size() != static_cast<size_t>(a.rank()) || b.rank() > a.rank())
    return aten.fail(code::kBadModel, "'linalg_tensorsolve' needs each dim once");
  a = aten("permute", {a, order});
  if (!a) return a;
  Dim count = 1;
  for (const Dim& dim : b.shape()) count = count * dim;
  const Shape shape = a.shape();
  const Shape result(shape.begin() + b.rank(), shape.end());
  const Term x = aten("linalg_solve", {aten("reshape", {a, Shape{count, count}}),
                                       aten("reshape", {b, Shape{count}})});
  return aten("reshape", {x, result});
};

constexpr auto kTensorInverse = [](const Aten& aten) -> Term {
  const Term a = aten.tensor("self");
  const int64_t ind = aten.call().int_attr("ind", 2);
  if (ind < 1 || ind > a.rank())
    return aten.fail(code::kBadModel, "'linalg_tensorinv' needs an ind of its dims, from 1");
  const Shape shape = a.shape();
  Dim count = 1;
  for (auto size = shape.begin() + ind; size != shape.end(); ++size) count = count * *size;
  Shape result(shape.begin() + ind, shape.end());
  result.insert(result.end(), shape.begin(), shape.begin() + ind);
  return aten("reshape", {inverted(aten, aten("reshape", {a, Shape{count, count}}))[0], result});
};

// --- exponential

// A polynomial of a matrix that was halved until it is small, and squared as often again. How
// often, data decides; so often at most.
constexpr auto kMatrixExp = [](const Aten& aten) -> Term {
  constexpr int kMostSquares = 24, kDegree = 18;
  const Term self = aten.tensor("self");
  if (!is_matrix(self)) return refuse_vector(aten);
  if (Aten::size(self, -1) == Dim(0)) return aten("clone", self);
  const Term a = self.is_complex() ? doubled(aten, self) : aten.wide(self);
  const Term sums = sum(abs(a), {-2});
  const Term norm = aten("amax", {sums, Dims{-1}, true});
  // The first number of halvings after which the norm is small enough for the degree.
  const double small_enough = a.dtype() == DType::f64 ? 1 : 3;
  const Term needed =
      aten("clamp", {aten("ceil", {aten("log2", {norm / small_enough})}), 0, kMostSquares});
  const Term small = a * aten("exp2", {-needed});
  const Term one = identity_like(aten, a);
  Term power = one;
  for (int k = kDegree; k > 0; --k)
    power = aten("add.Tensor", {one, aten("matmul", {small, power}) * (1.0 / k)});
  for (int k = 0; k < kMostSquares; ++k)
    power = select(gt(needed, k), aten("matmul", {power, power}), power);
  return self.is_complex() ? from_doubled(aten, power) : cast(power, self.dtype());
};

}  // namespace

std::vector<Import> import_linear_system() {
  const auto cholesky_call = composed<[](const Aten& aten) { return cholesky(aten, "self"); }>;
  return {
      {.schema = "cholesky(Tensor self, bool upper=False) -> Tensor", .build = cholesky_call},
      {.schema = "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "
                 "(Tensor L, Tensor info)",
       .build = composed<kCholeskyEx>},
      {.schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
       .build = composed<kCholeskySolve>},
      {.schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
       .build = composed<kCholeskyInverse>},
      {.schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
       .build = composed<kLu>},
      {.schema = "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
       .build = composed<kLuFactor>},
      {.schema = "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor "
                 "LU, Tensor pivots, Tensor info)",
       .build = composed<kLuWithInfo>},
      {.schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
       .build = composed<[](const Aten& aten) {
         return aten("linalg_lu_solve",
                     {aten.tensor("LU_data"), aten.tensor("LU_pivots"), aten.tensor("self")});
       }>},
      {.schema = "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
       .build = composed<[](const Aten& aten) { return solved_call(aten)[0]; }>},
      {.schema = "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
                 "-> (Tensor result, Tensor info)",
       .build = composed<kSolveEx>},
      {.schema = "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) "
                 "-> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
       .build = composed<solved_call>},
      {.schema = "linalg_inv(Tensor A) -> Tensor",
       .build = composed<[](const Aten& aten) { return inverted(aten, aten.tensor("A"))[0]; }>},
      {.schema = "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor "
                 "info)",
       .build = composed<[](const Aten& aten) { return inverted(aten, aten.tensor("A")); }>},
      {.schema = "inverse(Tensor self) -> Tensor",
       .build = composed<[](const Aten& aten) { return inverted(aten, aten.tensor("self"))[0]; }>},
      {.schema = "linalg_det(Tensor A) -> Tensor",
       .build = composed<[](const Aten& aten) { return determinant(aten)[0]; }>},
      {.schema = "det(Tensor self) -> Tensor",
       .build =
           composed<[](const Aten& aten) { return aten("linalg_det", {aten.tensor("self")}); }>},
      {.schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
       .build = composed<determinant>},
      {.schema = "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
       .build = composed<kSlogdet<2>>},
      {.schema = "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
       .build = composed<kSlogdet<2>>},
      {.schema = "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor "
                 "pivots)",
       .build = composed<kSlogdet<4>>},
      {.schema = "logdet(Tensor self) -> Tensor", .build = composed<kLogdet>},
      {.schema = "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
       .build = composed<kTensorSolve>},
      {.schema = "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
       .build = composed<kTensorInverse>},
      {.schema = "linalg_matrix_exp(Tensor self) -> Tensor", .build = composed<kMatrixExp>},
      {.schema = "matrix_exp(Tensor self) -> Tensor", .build = composed<kMatrixExp>},
  };
}

}  // namespace lathe
