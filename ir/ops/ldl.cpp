// ldl: symmetric matrices that are not positive definite; ldl_solve: with its factors.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/matrix.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Tensors = Result<std::vector<Tensor>>;
using Types = Result<std::vector<TensorType>>;

Types infer_ldl(const Node& node) {
  LATHE_DO(check_square(node, 0));
  const Shape& shape = self_type(node).shape;
  return std::vector<TensorType>{
      {self_type(node).dtype, with_matrix(shape, shape.back() + Dim(1), shape.back())}};
}

std::vector<Guard> ldl_demands(const Node& node) {
  Demands demands(node);
  demand_square(demands, self_type(node).shape);
  return demands.take();
}

// The whole of a symmetric matrix under elimination: row k and those behind it.
class Elimination {
 public:
  Elimination(Matrix a, int64_t n) : a_(std::move(a)), n_(n) {}

  Matrix run() {
    Matrix made(n_ + 1, n_);
    for (int64_t k = 0; k < n_;) {
      const auto [is_pair, place] = choose(k);
      const int64_t last = k + (is_pair ? 1 : 0);
      swap(k, last, place);
      is_pair ? eliminate_pair(k) : eliminate(k);
      for (int64_t i = k; i <= last; ++i)
        made(n_, i) = static_cast<double>(is_pair ? -place - 1 : place + 1);
      k = last + 1;
    }
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t j = 0; j <= i; ++j) made(i, j) = a_(i, j);
    return made;
  }

 private:
  // The lower triangle stands for both.
  double& at(int64_t i, int64_t j) { return i < j ? a_(j, i) : a_(i, j); }

  std::pair<bool, int64_t> choose(int64_t k) {
    const double alpha = (1 + std::sqrt(17.0)) / 8, own = std::fabs(at(k, k));
    int64_t row = k;
    double most = 0, of_row = 0;
    for (int64_t i = k + 1; i < n_; ++i)
      if (std::fabs(at(i, k)) > most) most = std::fabs(at(row = i, k));
    if (own >= alpha * most) return {false, k};
    for (int64_t i = k; i < n_; ++i)
      if (i != row) of_row = std::max(of_row, std::fabs(at(row, i)));
    if (own >= alpha * most * (most / of_row)) return {false, k};
    return {std::fabs(at(row, row)) < alpha * of_row, row};
  }

  // Of what is not eliminated yet, and of the block's own first column.
  void swap(int64_t k, int64_t last, int64_t place) {
    if (last == place) return;
    for (int64_t i = k; i < n_; ++i)
      if (i != last && i != place) std::swap(at(i, last), at(i, place));
    std::swap(at(last, last), at(place, place));
  }

  void eliminate(int64_t k) {
    const double pivot = at(k, k), inverse = pivot == 0 ? 0 : 1 / pivot;
    for (int64_t j = k + 1; j < n_; ++j)
      for (int64_t i = j; i < n_; ++i) at(i, j) -= at(i, k) * at(j, k) * inverse;
    for (int64_t i = k + 1; i < n_; ++i) at(i, k) *= inverse;
  }

  void eliminate_pair(int64_t k) {
    const double p = at(k, k), q = at(k + 1, k), r = at(k + 1, k + 1), det = p * r - q * q;
    for (int64_t j = k + 2; j < n_; ++j) {
      const double x = at(j, k), y = at(j, k + 1);
      const double a = (r * x - q * y) / det, b = (p * y - q * x) / det;
      for (int64_t i = j; i < n_; ++i) at(i, j) -= at(i, k) * a + at(i, k + 1) * b;
      at(j, k) = a;
      at(j, k + 1) = b;
    }
  }

  Matrix a_;
  int64_t n_;
};

Tensors ldl_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const auto [batch, n, columns] = matrix_sizes(*operands[0]);
  for (int64_t i = 0; i < batch; ++i)
    Elimination(Matrix(*operands[0], i, n, n), n).run().store(result, i);
  return std::vector<Tensor>{std::move(result)};
}

// --- solving

Shape wanted_right(const Node& node) {
  const Shape& b = node.operands[1].type().shape;
  return with_matrix(self_type(node).shape, self_type(node).shape.back(), b.back());
}
Shape wanted_pivots(const Node& node) {
  Shape shape = self_type(node).shape;
  shape.pop_back();
  return shape;
}

Types infer_ldl_solve(const Node& node) {
  LATHE_DO(check_square(node, 0));
  LATHE_DO(check_matrix(node, 1));
  const TensorType &a = self_type(node), &b = node.operands[1].type();
  const TensorType& pivots = node.operands[2].type();
  if (a.dtype != b.dtype || !is_integer(pivots.dtype))
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'ldl_solve' needs one dtype and integer pivots, got {}, {} and {}",
                            to_string(a), to_string(b), to_string(pivots))};
  if (a.rank() != b.rank() || a.rank() != pivots.rank() + 1)
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'ldl_solve' of {}, {} and {}: needs the same batch", to_string(a),
                            to_string(b), to_string(pivots))};
  LATHE_DO(check_shapes(node, {{"a B", node.operands[1], wanted_right(node)},
                               {"pivots", node.operands[2], wanted_pivots(node)}}));
  return std::vector<TensorType>{{b.dtype, b.shape}};
}

std::vector<Guard> ldl_solve_demands(const Node& node) {
  Demands demands(node);
  demand_square(demands, self_type(node).shape);
  demands.equal({{"a B", node.operands[1], wanted_right(node)},
                 {"pivots", node.operands[2], wanted_pivots(node)}});
  return demands.take();
}

Tensors ldl_solve_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const MatrixSizes sizes = matrix_sizes(*operands[1]);
  const int64_t batch = sizes.batch, n = sizes.rows, count = sizes.columns;
  for (int64_t i = 0; i < batch; ++i) {
    Matrix a(*operands[0], i, n, n), x(*operands[1], i, n, count);
    const auto pivot = [&](int64_t k) {
      return operands[2]->integers[static_cast<size_t>(i * n + k)];
    };
    const auto place = [&](int64_t k) {
      return std::clamp<int64_t>(std::abs(pivot(k)) - 1, 0, n - 1);
    };
    const auto exchange = [&](int64_t row, int64_t other) {
      for (int64_t c = 0; c < count && row != other; ++c) std::swap(x(row, c), x(other, c));
    };
    for (int64_t k = 0; k < n;) {
      const int64_t last = pivot(k) < 0 && k + 1 < n ? k + 1 : k;
      if (pivot(k) >= 0 || last > k) exchange(last, place(k));
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t row = last + 1; row < n; ++row)
          for (int64_t from = k; from <= last; ++from) x(row, c) -= a(row, from) * x(from, c);
        if (last == k) {
          if (pivot(k) >= 0) x(k, c) /= a(k, k);
          continue;
        }
        const double p = a(k, k), q = a(last, k), r = a(last, last), det = p * r - q * q;
        const double top = x(k, c), bottom = x(last, c);
        x(k, c) = (r * top - q * bottom) / det;
        x(last, c) = (p * bottom - q * top) / det;
      }
      k = last + 1;
    }
    for (int64_t k = n - 1; k >= 0;) {
      const int64_t first = pivot(k) < 0 && k > 0 ? k - 1 : k;
      for (int64_t row = first; row <= k; ++row)
        for (int64_t c = 0; c < count; ++c)
          for (int64_t from = k + 1; from < n; ++from) x(row, c) -= a(from, row) * x(from, c);
      exchange(k, place(k));
      k = first - 1;
    }
    x.store(result, i);
  }
  return std::vector<Tensor>{std::move(result)};
}

// LD, pivots and info: the first block that is zero, counted from 1.
template <size_t kCount>
constexpr auto kLdlFactor = [](const Aten& aten) -> std::vector<Term> {
  const Term packed = apply("ldl", {aten.tensor("self")});
  if (!packed) return std::vector<Term>(kCount, packed);
  const Dim rows = Aten::size(packed, -1);
  const Term ld = aten("contiguous", {aten("slice.Tensor", {packed, -2, 0, rows})});
  const Term pivots = aten("to.dtype", {aten("select.int", {packed, -2, rows}), DType::i32});
  const Term is_zero = aten("eq.Scalar", {main_diagonal(aten, ld), 0});
  const Term is_single = aten("gt.Scalar", {pivots, 0});
  std::vector<Term> results = {ld, pivots};
  if (kCount > 2) results.push_back(first_true(aten, aten("logical_and", {is_zero, is_single})));
  return results;
};

constexpr auto kLdlSolve = [](const Aten& aten) -> Term {
  const Term given = aten.tensor("LD"), pivots = aten.tensor("pivots");
  const auto [ld, b] = in_batches(aten, given, aten.tensor("B"));
  const auto column = in_batches(aten, aten("unsqueeze", {pivots, -1}), b);
  return apply("ldl_solve", {ld, b, aten("squeeze.dim", {column.first, -1})});
};

Example ldl_solve_example(std::vector<int64_t> a, std::vector<int64_t> b, DType dtype,
                          std::vector<double> pivots) {
  const std::vector<int64_t> rows(a.begin(), a.end() - 1);
  return {.operands = {{.dtype = dtype, .shape = std::move(a), .low = 0.5},
                       {.dtype = dtype, .shape = std::move(b)},
                       {.dtype = DType::i32, .shape = rows, .values = std::move(pivots)}}};
}

}  // namespace

std::vector<OpDef> define_ldl() {
  OpDef ldl{
      .name = "ldl",
      .summary = "L and D of L D L^T, of rows and columns in another order; then the pivots",
      .doc =
          "Of the lower triangle. D has blocks of one or two columns, which stand where L has "
          "ones, and zeros. Behind the last row: which row, from 1, was swapped with the "
          "block's last; negative, and twice, of two.",
      .operands = {{"self"}},
      .attrs = {},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_ldl,
      .demands = ldl_demands,
      .reference = ldl_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool "
                             "check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
                   .build = composed<kLdlFactor<3>>},
                  {.schema = "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor "
                             "LD, Tensor pivots)",
                   .build = composed<kLdlFactor<2>>}},
      .examples = {{.operands = {{.shape = {3, 3}}}},
                   {.operands = {{.shape = {2, 7, 7}}}},
                   {.operands = {{.shape = {3, 3}, .values = {0, 0, 0, 2, 0, 0, 1, 5, 0}}}},
                   {.operands = {{.shape = {2, 1, 1, 1}}}},
                   {.operands = {{.shape = {2, 2}, .values = {0, 0, 0, 0}}}},
                   {.operands = {{.shape = {2, 0, 0}}}},
                   {.operands = {{.dtype = DType::f64, .shape = {2, 11, 11}}}},
                   {.operands = {{.dtype = DType::f64, .shape = {37, 37}}}}},
  };
  OpDef solve{
      .name = "ldl_solve",
      .summary = "X of A X = B, of what ldl made of A",
      .doc = "",
      .operands = {{"LD"}, {"B"}, {"pivots"}},
      .attrs = {},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_ldl_solve,
      .demands = ldl_solve_demands,
      .reference = ldl_solve_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool "
                             "hermitian=False) -> Tensor",
                   .build = composed<kLdlSolve>}},
      .examples = {ldl_solve_example({3, 3}, {3, 2}, DType::f32, {1, 3, 3}),
                   ldl_solve_example({4, 4}, {4, 5}, DType::f32, {-3, -3, 4, 4}),
                   ldl_solve_example({2, 3, 3}, {2, 3, 1}, DType::f64, {2, -3, -3, 1, 2, 3}),
                   ldl_solve_example({2, 0, 0}, {2, 0, 3}, DType::f32, {})},
  };
  return {std::move(ldl), std::move(solve)};
}

}  // namespace lathe
