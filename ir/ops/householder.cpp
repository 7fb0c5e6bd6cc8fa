// householder: reflections that make a matrix triangular.
#include <cmath>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/matrix.h"
#include "ir/op/self.h"

namespace lathe {
namespace {

Result<std::vector<TensorType>> infer_householder(const Node& node) {
  LATHE_DO(check_matrix(node, 0));
  return same_as_self(node);
}

Result<std::vector<Tensor>> householder_reference(const Node& node,
                                                  std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const auto [batch, m, n] = matrix_sizes(*operands[0]);
  for (int64_t b = 0; b < batch; ++b) {
    Matrix a(*operands[0], b, m, n);
    for (int64_t k = 0; k < std::min(m, n); ++k) {
      double tail = 0;
      for (int64_t i = k + 1; i < m; ++i) tail = std::hypot(tail, a(i, k));
      if (tail == 0) continue;
      const double head = a(k, k), beta = -std::copysign(std::hypot(head, tail), head);
      for (int64_t i = k + 1; i < m; ++i) a(i, k) /= head - beta;
      a(k, k) = beta;
      for (int64_t j = k + 1; j < n; ++j) {
        double along = a(k, j);
        for (int64_t i = k + 1; i < m; ++i) along += a(i, k) * a(i, j);
        along *= (beta - head) / beta;
        a(k, j) -= along;
        for (int64_t i = k + 1; i < m; ++i) a(i, j) -= along * a(i, k);
      }
    }
    a.store(result, b);
  }
  return std::vector<Tensor>{std::move(result)};
}

// A reflection is I - tau v v^T, and turns lengths into none: tau is 2 / v^T v, and 0 of what was
// left as it is.
constexpr auto kGeqrf = [](const Aten& aten) -> std::vector<Term> {
  const Term packed = apply("householder", {aten.tensor("self")});
  if (!packed) return {packed, packed};
  const Dim count = Dim::min(Aten::size(packed, -2), Aten::size(packed, -1));
  const Term tails = aten("tril", {aten("slice.Tensor", {packed, -1, 0, count}), -1});
  const Term squares = aten("sum.dim_IntList", {tails * tails, Dims{-2}});
  const Term is_any = aten("any.dim", {tails, -2});
  return {packed, select(is_any, 2.0 / (squares + 1.0), 0)};
};

}  // namespace

std::vector<OpDef> define_householder() {
  return {{
      .name = "householder",
      .summary = "R, and below its diagonal the vectors of the reflections that make it",
      .doc = "A vector begins with a 1 on the diagonal, which is not stored. A column that has "
             "zeros alone below the diagonal is not reflected.",
      .operands = {{"self"}},
      .attrs = {},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_householder,
      .reference = householder_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
                   .build = composed<kGeqrf>}},
      .examples = {{.operands = {{.shape = {3, 3}}}},
                   {.operands = {{.shape = {2, 7, 5}}}},
                   {.operands = {{.shape = {3, 1, 5, 11}}}},
                   {.operands = {{.shape = {2, 2}, .values = {3, 1, 0, -2}}}},
                   {.operands = {{.shape = {2, 1, 1}}}},
                   {.operands = {{.shape = {2, 0, 3}}}},
                   {.operands = {{.shape = {3, 0}}}},
                   {.operands = {{.dtype = DType::f64, .shape = {2, 19, 17}}}}},
  }};
}

}  // namespace lathe
