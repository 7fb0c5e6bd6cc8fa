// cholesky: the triangular factor of positive definite matrices.
#include <cmath>
#include <random>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/matrix.h"
#include "ir/op/self.h"

namespace lathe {
namespace {

Result<std::vector<TensorType>> infer_cholesky(const Node& node) {
  LATHE_DO(check_square(node, 0));
  return same_as_self(node);
}

std::vector<Guard> cholesky_demands(const Node& node) {
  Demands demands(node);
  demand_square(demands, self_type(node).shape);
  return demands.take();
}

Result<std::vector<Tensor>> cholesky_reference(const Node& node,
                                               std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const bool is_upper = node.bool_attr("upper");
  const auto [batch, n, columns] = matrix_sizes(*operands[0]);
  for (int64_t i = 0; i < batch; ++i) {
    Matrix a(*operands[0], i, n, n), made(n, n);
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = k; j < n; ++j) {
        double sum = is_upper ? a(k, j) : a(j, k);
        const auto factor = [&](int64_t row, int64_t column) -> double& {
          return is_upper ? made(column, row) : made(row, column);
        };
        for (int64_t p = 0; p < k; ++p) sum -= factor(j, p) * factor(k, p);
        factor(j, k) = j == k ? std::sqrt(sum) : sum / factor(k, k);
      }
    }
    made.store(result, i);
  }
  return std::vector<Tensor>{std::move(result)};
}

// A A^T + I of random A.
ExampleTensor definite(std::vector<int64_t> shape, DType dtype = DType::f32) {
  const int64_t n = shape.back();
  ExampleTensor made{.dtype = dtype, .shape = shape};
  std::mt19937 random(7);
  for (int64_t left = num_elements(shape); left > 0; left -= n * n) {
    Matrix a(n, n);
    for (int64_t i = 0; i < n * n; ++i) a(i / n, i % n) = random() % 64 / 32.0 - 1;
    for (int64_t i = 0; i < n * n; ++i) {
      double sum = i / n == i % n ? 1 : 0;
      for (int64_t k = 0; k < n; ++k) sum += a(i / n, k) * a(i % n, k);
      made.values.push_back(sum);
    }
  }
  return made;
}

}  // namespace

std::vector<OpDef> define_cholesky() {
  return {{
      .name = "cholesky",
      .summary = "L of L L^T, or with `upper` U of U^T U",
      .doc = "Reads one triangle. Where a leading minor is not positive, the diagonal has from "
             "there on what is not positive, or NaN.",
      .operands = {{"self"}},
      .attrs = {{.name = "upper", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_cholesky,
      .demands = cholesky_demands,
      .reference = cholesky_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{"linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor"}},
      .examples = {{.operands = {definite({3, 3})}},
                   {.operands = {definite({2, 7, 7})}, .attrs = {{"upper", true}}},
                   {.operands = {definite({2, 3, 1, 1})}},
                   {.operands = {definite({37, 37})}},
                   {.operands = {{.shape = {2, 0, 0}}}},
                   {.operands = {{.shape = {0, 3, 3}}}},
                   {.operands = {definite({5, 17, 17}, DType::f64)}}},
  }};
}

}  // namespace lathe
