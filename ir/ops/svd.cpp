// svd: singular values and vectors. eigh has those of symmetric matrices.
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

Result<std::vector<TensorType>> infer_svd(const Node& node) {
  LATHE_DO(check_matrix(node, 0));
  Shape shape = self_type(node).shape;
  const Dim m = shape[shape.size() - 2], n = shape.back();
  shape.pop_back();
  shape.back() = n;
  if (node.bool_attr("vectors")) shape = with_matrix(self_type(node).shape, m + n + Dim(1), n);
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

// Each column with each other.
void turn_all(Matrix& a, int64_t m, int64_t n) {
  bool is_turned = true;
  for (int sweep = 0; sweep < kMostSweeps && is_turned; ++sweep) {
    is_turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) is_turned |= turn(a, m, m + n, p, q);
  }
}

double length_of(Matrix& a, int64_t first, int64_t last, int64_t column) {
  double length = 0;
  for (int64_t i = first; i < last; ++i) length = std::hypot(length, a(i, column));
  return length;
}

// A column of no length becomes one of length 1 that is orthogonal to those before it in `order`:
// what is left of the first unit vector of which most is.
void complete(Matrix& a, int64_t m, const std::vector<size_t>& order, size_t place) {
  const auto at = static_cast<int64_t>(order[place]);
  for (int64_t unit = 0; unit < m; ++unit) {
    for (int64_t i = 0; i < m; ++i) a(i, at) = i == unit ? 1 : 0;
    for (size_t done = 0; done < 2 * place; ++done) {
      const auto other = static_cast<int64_t>(order[done % place]);
      double along = 0;
      for (int64_t i = 0; i < m; ++i) along += a(i, at) * a(i, other);
      for (int64_t i = 0; i < m; ++i) a(i, at) -= along * a(i, other);
    }
    const double length = length_of(a, 0, m, at);
    for (int64_t i = 0; i < m; ++i) a(i, at) /= length;
    if (length * length * static_cast<double>(m) > 0.5) return;
  }
}

// The largest element of V's column becomes positive.
void turn_sign(Matrix& a, int64_t m, int64_t all, int64_t column) {
  double most = 0;
  for (int64_t i = m; i < all; ++i)
    if (std::fabs(a(i, column)) > std::fabs(most)) most = a(i, column);
  for (int64_t i = 0; i < all && most < 0; ++i) a(i, column) = -a(i, column);
}

Result<std::vector<Tensor>> svd_reference(const Node& node,
                                          std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const auto [batch, given_m, n] = matrix_sizes(*operands[0]);
  const int64_t m = std::max(given_m, n);  // rows of zeros, so that U has as many columns as V
  for (int64_t b = 0; b < batch; ++b) {
    Matrix given(*operands[0], b, given_m, n), a(m + n, n);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < given_m; ++i) a(i, j) = given(i, j);
      a(m + j, j) = 1;
    }
    turn_all(a, m, n);
    std::vector<double> lengths(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j) lengths[static_cast<size_t>(j)] = length_of(a, 0, m, j);
    std::vector<size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t i, size_t k) { return lengths[i] > lengths[k]; });
    for (size_t j = 0; j < order.size(); ++j) {
      const double length = lengths[order[j]];
      const auto place = static_cast<int64_t>(j), from = static_cast<int64_t>(order[j]);
      if (!node.bool_attr("vectors")) {
        put(result, b * n + place, length);
        continue;
      }
      if (length <= 1e-15 * lengths[order[0]])
        complete(a, m, order, j);
      else
        for (int64_t i = 0; i < m; ++i) a(i, from) /= length;
      turn_sign(a, m, m + n, from);
      const int64_t first = b * (given_m + n + 1);
      for (int64_t i = 0; i < given_m; ++i) put(result, (first + i) * n + place, a(i, from));
      for (int64_t i = 0; i < n; ++i)
        put(result, (first + given_m + i) * n + place, a(m + i, from));
      put(result, (first + given_m + n) * n + place, length);
    }
  }
  return std::vector<Tensor>{std::move(result)};
}

// U, S and V^T of a matrix that is not known to be wide. What makes U triangular makes it diagonal,
// and completes it: with columns that a tall matrix has not, or where one may be wide, for which
// only the first columns are of length 1.
std::vector<Term> decomposed(const Aten& aten, Term a, bool is_full) {
  const Dim m = Aten::size(a, -2), n = Aten::size(a, -1);
  const bool is_tall = m == n || (m.is_const() && n.is_const() && m.value() >= n.value());
  const Dim count = is_tall ? n : Dim::min(m, n);
  const Term packed = apply("svd", {a}, {{"vectors", true}});
  if (!packed) return {packed, packed, packed};
  Term u = rows_from(aten, packed, 0, m), v = rows_from(aten, packed, m, n);
  Term values = aten("squeeze.dim", {rows_from(aten, packed, m + n, 1), -2});
  if (!is_tall) {
    if (!is_full) v = aten("slice.Tensor", {v, -1, 0, count});
    u = u * aten("unsqueeze", {values, -2});
    values = aten("slice.Tensor", {values, -1, 0, count});
  }
  if (!is_tall || (is_full && m != n)) {
    const std::vector<Term> qr = aten.all("linalg_qr", {u, is_full ? "complete" : "reduced"});
    u = qr[0];
    const Term diagonal = main_diagonal(aten, qr[1]);
    Term signs = select(lt(diagonal, 0), constant_like(u, -1), 1);
    signs = aten("unsqueeze", {signs, -2});
    const Term first = aten("slice.Tensor", {u, -1, 0, count}) * signs;
    const std::vector<Term> columns = {first, aten("slice.Tensor", {u, -1, count, m})};
    u = is_full ? aten("cat", {columns, -1}) : first;
  }
  return {u, values, transpose_last(v)};
}

constexpr auto kSvd = [](const Aten& aten) -> std::vector<Term> {
  const Term a = aten.tensor("A");
  if (a.rank() < 2) return {apply("svd", {a}, {{"vectors", true}}), a, a};
  const bool is_wide = Aten::size(a, -2).is_const() && Aten::size(a, -1).is_const() &&
                       Aten::size(a, -2).value() < Aten::size(a, -1).value();
  const Term tall = is_wide ? transpose_last(a) : a;
  if (!aten.call().bool_attr("compute_uv", true)) {
    const Term values = apply("svd", {tall}, {{"vectors", false}});
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

std::vector<Example> svd_examples() {
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

std::vector<OpDef> define_svd() {
  return {{
      .name = "svd",
      .summary = "U above V above S, of A = U S V^T, largest S first; without `vectors` S alone",
      .doc =
          "S has as many values as there are columns. The largest element of each column of V is "
          "positive. Which columns belong to equal values, nothing says; nor those of a U that "
          "has fewer rows than columns, where S is zero.",
      .operands = {{"self"}},
      .attrs = {{.name = "vectors", .kind = AttrKind::boolean}},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_svd,
      .reference = svd_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "_linalg_svd(Tensor A, bool full_matrices=False, bool "
                             "compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, "
                             "Tensor Vh)",
                   .build = composed<kSvd>}},
      .examples = svd_examples(),
  }};
}

}  // namespace lathe
