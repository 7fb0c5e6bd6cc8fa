// lu: elimination with swapped rows; swapped: the order of rows behind it.
#include <cmath>
#include <tuple>
#include <utility>

#include "ir/op/complex.h"
#include "ir/op/dense.h"
#include "ir/op/import_call.h"
#include "ir/op/matrix.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Tensors = Result<std::vector<Tensor>>;
using Types = Result<std::vector<TensorType>>;

Types infer_lu(const Node& node) {
  LATHE_DO(check_matrix(node, 0));
  const Shape& shape = self_type(node).shape;
  return std::vector<TensorType>{
      {self_type(node).dtype, with_matrix(shape, shape[shape.size() - 2] + Dim(1), shape.back())}};
}

Tensors lu_reference(const Node& node, std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const auto [batch, m, n] = matrix_sizes(*operands[0]);
  for (int64_t b = 0; b < batch; ++b) {
    Matrix a(*operands[0], b, m, n), made(m + 1, n);
    for (int64_t i = 0; i < m * n; ++i) made(i / n, i % n) = a(i / n, i % n);
    for (int64_t k = 0; k < std::min(m, n); ++k) {
      int64_t place = k;
      for (int64_t i = k + 1; i < m && node.bool_attr("pivot"); ++i)
        if (std::fabs(made(i, k)) > std::fabs(made(place, k))) place = i;
      for (int64_t j = 0; j < n && place != k; ++j) std::swap(made(k, j), made(place, j));
      made(m, k) = static_cast<double>(place + 1);
      const double pivot = made(k, k);
      for (int64_t i = k + 1; i < m; ++i) {
        const double factor = made(i, k) = pivot == 0 ? made(i, k) : made(i, k) / pivot;
        for (int64_t j = k + 1; j < n; ++j) made(i, j) -= factor * made(k, j);
      }
    }
    made.store(result, b);
  }
  return std::vector<Tensor>{std::move(result)};
}

// LU, pivots and info: the first zero on U's diagonal, counted from 1.
constexpr auto kFactor = [](const Aten& aten) -> std::vector<Term> {
  const Term packed = apply("lu", {aten.tensor("A")}, {{"pivot", aten.attr("pivot")}});
  if (!packed) return {packed, packed, packed};
  const Dim rows = Aten::size(packed, -2) - Dim(1);
  const Dim count = Dim::min(rows, Aten::size(packed, -1));
  const Term lu = aten("slice.Tensor", {packed, -2, 0, rows});
  const Term pivots = aten("slice.Tensor", {aten("select.int", {packed, -2, rows}), -1, 0, count});
  const Term is_zero = aten("eq.Scalar", {main_diagonal(aten, lu), 0});
  return {aten("contiguous", {lu}), aten("to.dtype", {pivots, DType::i32}),
          first_true(aten, is_zero)};
};

Types infer_swapped(const Node& node) {
  const TensorType &self = self_type(node), &pivots = node.operands[1].type();
  bool fits = self.rank() > 0 && self.rank() == pivots.rank();
  for (size_t d = 0; fits && d + 1 < self.shape.size(); ++d)
    fits = !differ(self.shape[d], pivots.shape[d]);
  if (!fits || self.dtype != DType::i64 || !is_integer(pivots.dtype))
    return Diag{code::kShapeMismatch, node.loc,
                "'swapped' needs i64 and pivots that are integers, in as many rows"};
  return same_as_self(node);
}

std::vector<Guard> swapped_demands(const Node& node) {
  Demands demands(node);
  const TensorType& self = self_type(node);
  demands.equal_but(self.rank() - 1, self.shape, node.operands[1].type().shape,
                    "needs pivots for each row");
  return demands.take();
}

Tensors swapped_reference(const Node&, std::span<const Tensor* const> operands) {
  Tensor result = *operands[0];
  const int64_t n = result.shape.back(), count = operands[1]->shape.back();
  const int64_t rows = n == 0 ? 0 : result.num_elements() / n;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < std::min(n, count); ++i) {
      const int64_t place = operands[1]->integers[static_cast<size_t>(row * count + i)] - 1;
      if (place < i || place >= n) continue;
      std::swap(result.integers[static_cast<size_t>(row * n + i)],
                result.integers[static_cast<size_t>(row * n + place)]);
    }
  }
  return std::vector<Tensor>{std::move(result)};
}

// Which row of A is the i-th behind all swaps.
Term order_of_rows(const Aten& aten, Term pivots, const Dim& rows) {
  if (pivots.rank() < 1) return aten.fail(code::kShapeMismatch, "pivots need a dim");
  Shape shape = pivots.shape();
  shape.back() = rows;
  return apply("swapped", {aten("expand", {aten.arange(rows), shape}), pivots});
}

// P, L and U of A = P L U.
constexpr auto kUnpack = [](const Aten& aten) -> std::vector<Term> {
  const Term lu = aten.tensor("LU_data"), none = aten.null();
  if (lu.rank() < 2) return {aten.fail(code::kShapeMismatch, "needs matrices"), none, none};
  const Dim m = Aten::size(lu, -2), n = Aten::size(lu, -1), k = Dim::min(m, n);
  Term p = aten("new_zeros", {lu, Dims{0}}), l = p, u = p;
  if (aten.call().bool_attr("unpack_pivots", true)) {
    const Term order = order_of_rows(aten, aten.tensor("LU_pivots"), m);
    const Term row = aten("unsqueeze", {aten.arange(m), -1});
    const Term is_one = aten("eq.Tensor", {aten("unsqueeze", {order, -2}), row});
    p = aten("to.dtype", {is_one, lu.dtype()});
    if (lu.is_complex()) p = complex_of(aten, parts(aten, p));
  }
  if (aten.call().bool_attr("unpack_data", true)) {
    const Term below = aten("tril", {aten("slice.Tensor", {lu, -1, 0, k}), -1});
    l = aten("add.Tensor", {below, aten("eye.m", {m, k, lu.dtype()})});
    u = aten("triu", {aten("slice.Tensor", {lu, -2, 0, k})});
  }
  return {p, l, u};
};

// X of A X = B, or of X A = B, which is A^T X^T = B^T; `adjoint` turns A itself.
constexpr auto kSolve = [](const Aten& aten) -> Term {
  Term lu = aten.tensor("LU"), pivots = aten.tensor("pivots"), b = aten.tensor("B");
  if (lu.rank() < 2 || b.rank() < 2 || pivots.rank() < 1)
    return aten.fail(code::kShapeMismatch, "'linalg_lu_solve' needs matrices");
  const bool is_left = aten.call().bool_attr("left", true);
  const bool is_adjoint = aten.call().bool_attr("adjoint"), is_turned = is_adjoint == is_left;
  const auto turn = [&](Term x) { return is_adjoint ? adjoint(aten, x) : turned(aten, x); };
  if (!is_left) b = turn(b);
  const Dim n = Aten::size(lu, -1);
  Term order = aten("unsqueeze", {order_of_rows(aten, pivots, n), -1});
  std::tie(lu, b) = in_batches(aten, lu, b);
  order = aten("squeeze.dim", {in_batches(aten, order, b).first, -1});
  const auto solve = [&](Term a, Term x, bool is_upper, bool is_unit) {
    return aten("linalg_solve_triangular", {a, x, is_upper, true, is_unit});
  };
  if (is_turned) {
    const Term other = turn(lu);
    b = solve(other, solve(other, b, false, false), true, true);
    b = take_rows(aten, b, aten("argsort", {order}));
  } else {
    b = solve(lu, solve(lu, take_rows(aten, b, order), false, true), true, false);
  }
  return is_left ? b : turn(b);
};

std::vector<Example> lu_examples() {
  return {
      {.operands = {{.shape = {3, 3}}}},
      {.operands = {{.shape = {2, 5, 7}}}},
      {.operands = {{.shape = {3, 1, 11, 5}}}},
      {.operands = {{.shape = {2, 2}, .values = {0, 0, 0, 3}}}},
      {.operands = {{.shape = {1, 1}}}},
      {.operands = {{.shape = {2, 0, 3}}}},
      {.operands = {{.shape = {3, 0}}}},
      {.operands = {{.shape = {4, 4}, .values = {9, 1, 2, 0, 1, 8, 1, 1, 2, 1, 7, 1, 0, 2, 1, 9}}},
       .attrs = {{"pivot", false}}},
      {.operands = {{.dtype = DType::f64, .shape = {2, 19, 17}}}},
      {.operands = {{.dtype = DType::f64, .shape = {70, 45}}}},
      {.operands = {{.dtype = DType::f64, .shape = {21, 70}}}}};
}

}  // namespace

std::vector<OpDef> define_lu() {
  OpDef lu{
      .name = "lu",
      .summary = "L below the diagonal and U from it on, of rows in another order; then the pivots",
      .doc =
          "Behind the last row stands for each of the first min(m, n) columns which row, from "
          "1, was swapped with its own. A column that has zeros alone stays as it is.",
      .operands = {{"self"}},
      .attrs = {{.name = "pivot", .kind = AttrKind::boolean, .default_value = true}},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_lu,
      .reference = lu_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool "
                             "check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
                   .build = composed<kFactor>}},
      .examples = lu_examples(),
  };
  const auto order = [](std::vector<int64_t> shape) {
    return ExampleTensor{.dtype = DType::i64, .shape = std::move(shape), .low = 0, .high = 9};
  };
  const auto pivots = [](std::vector<int64_t> shape) {
    return ExampleTensor{.dtype = DType::i32, .shape = std::move(shape), .low = 1, .high = 8};
  };
  OpDef swapped{
      .name = "swapped",
      .summary = "along the last dim, element i swapped with element pivots[i] - 1, one by one",
      .doc = "What is no place from i on swaps nothing.",
      .operands = {{"self"}, {"pivots"}},
      .attrs = {},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_swapped,
      .demands = swapped_demands,
      .reference = swapped_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = Absent{"the result is not a float"},
      .imports = {{.schema = "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
                             "bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
                   .build = composed<kUnpack>},
                  {.schema = "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool "
                             "left=True, bool adjoint=False) -> Tensor",
                   .build = composed<kSolve>}},
      .examples = {{.operands = {order({7}), pivots({7})}},
                   {.operands = {order({2, 11}), pivots({2, 5})}},
                   {.operands = {order({3, 0}), pivots({3, 0})}},
                   {.operands = {order({2, 3, 1}), pivots({2, 3, 1})}}},
  };
  return {std::move(lu), std::move(swapped)};
}

}  // namespace lathe
