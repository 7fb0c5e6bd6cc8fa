// jacobi_svd: singular values and vectors, by turning pairs of columns.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "ir/op/dense.h"
#include "ir/op/matrix.h"
#include "ir/op/self.h"

namespace lathe {
namespace {

constexpr int kMostSweeps = 40;

Result<std::vector<TensorType>> infer_jacobi_svd(const Node& node) {
  LATHE_DO(check_matrix(node, 0));
  Shape shape = self_type(node).shape;
  const Dim m = shape[shape.size() - 2], n = shape.back();
  shape.pop_back();
  shape.back() = n;
  if (node.bool_attr("vectors")) shape = with_matrix(self_type(node).shape, m + n, n);
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

// Turns two columns where they are not orthogonal; the first `m` rows say whether.
bool turn(Matrix& a, int64_t m, int64_t all, int64_t p, int64_t q) {
  double of_p = 0, of_q = 0, both = 0;
  for (int64_t i = 0; i < m; ++i) {
    of_p += a(i, p) * a(i, p);
    of_q += a(i, q) * a(i, q);
    both += a(i, p) * a(i, q);
  }
  if (!(std::fabs(both) > 1e-15 * std::sqrt(of_p) * std::sqrt(of_q))) return false;
  const double ratio = (of_q - of_p) / (2 * both);
  const double tangent = (ratio < 0 ? -1 : 1) / (std::fabs(ratio) + std::sqrt(1 + ratio * ratio));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = cosine * tangent;
  for (int64_t i = 0; i < all; ++i) {
    const double x = a(i, p), y = a(i, q);
    a(i, p) = cosine * x - sine * y;
    a(i, q) = sine * x + cosine * y;
  }
  return true;
}

// Each column with each other, in the order of the kernel: signs come out alike.
void turn_all(Matrix& a, int64_t m, int64_t n) {
  const int64_t half = (n + 1) / 2, last = 2 * half - 1;
  bool is_turned = true;
  for (int sweep = 0; sweep < kMostSweeps && is_turned; ++sweep) {
    is_turned = false;
    for (int64_t round = 0; round < last; ++round) {
      for (int64_t i = 0; i < half; ++i) {
        const int64_t first = i == 0 ? last : (round + i) % last;
        const int64_t second = (round - i + last) % last;
        const int64_t p = std::min(first, second), q = std::max(first, second);
        if (q < n && turn(a, m, m + n, p, q)) is_turned = true;
      }
    }
  }
}

Result<std::vector<Tensor>> jacobi_svd_reference(const Node& node,
                                                 std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const auto [batch, m, n] = matrix_sizes(*operands[0]);
  for (int64_t b = 0; b < batch; ++b) {
    Matrix given(*operands[0], b, m, n), a(m + n, n);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < m; ++i) a(i, j) = given(i, j);
      a(m + j, j) = 1;
    }
    turn_all(a, m, n);
    std::vector<double> lengths(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j) {
      double& length = lengths[static_cast<size_t>(j)];
      for (int64_t i = 0; i < m; ++i) length = std::hypot(length, a(i, j));
    }
    std::vector<size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t i, size_t k) { return lengths[i] > lengths[k]; });
    for (int64_t j = 0; j < n; ++j) {
      const size_t from = order[static_cast<size_t>(j)];
      if (!node.bool_attr("vectors")) {
        put(result, b * n + j, lengths[from]);
        continue;
      }
      for (int64_t i = 0; i < m + n; ++i)
        put(result, (b * (m + n) + i) * n + j, a(i, static_cast<int64_t>(from)));
    }
  }
  return std::vector<Tensor>{std::move(result)};
}

// U, S and V^T of a matrix that is not known to be wide. U S has orthogonal columns: what makes it
// triangular makes it diagonal, and completes U where singular values are zero.
std::vector<Term> decomposed(const Aten& aten, Term a, bool is_full) {
  const Dim m = Aten::size(a, -2), n = Aten::size(a, -1);
  const Dim count = m == n ? n : Dim::min(m, n);
  const Term packed = apply("jacobi_svd", {a}, {{"vectors", true}});
  if (!packed) return {packed, packed, packed};
  const Term us = rows_from(aten, packed, 0, m);
  Term v = rows_from(aten, packed, m, n);
  if (!is_full) v = aten("slice.Tensor", {v, -1, 0, count});
  const Term lengths = aten("linalg_vector_norm", {us, 2.0, Dims{-2}});
  const Term values = aten("slice.Tensor", {lengths, -1, 0, count});
  const std::vector<Term> qr = aten.all("linalg_qr", {us, is_full ? "complete" : "reduced"});
  Term u = qr[0];
  const Term diagonal = main_diagonal(aten, qr[1]);
  Term signs = select(lt(diagonal, 0), constant_like(us, -1), 1);
  signs = aten("unsqueeze", {signs, -2});
  const Term first = aten("slice.Tensor", {u, -1, 0, count}) * signs;
  const std::vector<Term> columns = {first, aten("slice.Tensor", {u, -1, count, m})};
  u = is_full ? aten("cat", {columns, -1}) : first;
  return {u, values, transpose_last(v)};
}

constexpr auto kSvd = [](const Aten& aten) -> std::vector<Term> {
  const Term a = aten.tensor("A");
  if (a.rank() < 2) return {apply("jacobi_svd", {a}, {{"vectors", true}}), a, a};
  const bool is_wide = Aten::size(a, -2).is_const() && Aten::size(a, -1).is_const() &&
                       Aten::size(a, -2).value() < Aten::size(a, -1).value();
  const Term tall = is_wide ? transpose_last(a) : a;
  if (!aten.call().bool_attr("compute_uv", true)) {
    const Term values = apply("jacobi_svd", {tall}, {{"vectors", false}});
    const Dim count = Dim::min(Aten::size(a, -2), Aten::size(a, -1));
    const Term none = aten.full({Dim(0)}, 0, a.dtype());
    return {none, values ? aten("slice.Tensor", {values, -1, 0, count}) : values, none};
  }
  std::vector<Term> parts = decomposed(aten, tall, aten.call().bool_attr("full_matrices"));
  if (is_wide && parts[0]) {
    const Term u = transpose_last(parts[2]);
    parts = {u, parts[1], transpose_last(parts[0])};
  }
  return parts;
};

std::vector<Example> jacobi_svd_examples() {
  const auto example = [](std::vector<int64_t> shape, bool has_vectors, DType dtype = DType::f32) {
    return Example{.operands = {{.dtype = dtype, .shape = std::move(shape)}},
                   .attrs = {{"vectors", has_vectors}}};
  };
  return {example({3, 3}, true),        example({2, 7, 5}, true),
          example({2, 1, 11, 4}, true), example({5, 7}, false),
          example({2, 1, 1}, true),     example({2, 0, 3}, true),
          example({3, 0}, true),        example({0, 3, 2}, false),
          example({2, 13, 13}, false),  example({19, 17}, true, DType::f64)};
}

}  // namespace

std::vector<OpDef> define_jacobi_svd() {
  return {{
      .name = "jacobi_svd",
      .summary = "U S above V, of A = U S V^T, largest S first; without `vectors` S alone",
      .doc = "S has as many values as there are columns. Which sign a column of U S and V has, and "
             "which columns belong to equal values, nothing says.",
      .operands = {{"self"}},
      .attrs = {{.name = "vectors", .kind = AttrKind::boolean}},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_jacobi_svd,
      .reference = jacobi_svd_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "_linalg_svd(Tensor A, bool full_matrices=False, bool "
                             "compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, "
                             "Tensor Vh)",
                   .build = composed<kSvd>}},
      .examples = jacobi_svd_examples(),
  }};
}

}  // namespace lathe
