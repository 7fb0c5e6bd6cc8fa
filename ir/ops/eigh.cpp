// eigh: eigenvalues and eigenvectors of symmetric matrices. svd has singular values of others.
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

Result<std::vector<TensorType>> infer_eigh(const Node& node) {
  LATHE_DO(check_square(node, 0));
  Shape shape = self_type(node).shape;
  const Dim n = shape.back();
  shape.pop_back();
  if (node.bool_attr("vectors")) shape = with_matrix(self_type(node).shape, n + Dim(1), n);
  return std::vector<TensorType>{{self_type(node).dtype, std::move(shape)}};
}

std::vector<Guard> eigh_demands(const Node& node) {
  Demands demands(node);
  demand_square(demands, self_type(node).shape);
  return demands.take();
}

// Jacobi's rotation that makes a(p, q) zero; in rows from n on stand the vectors.
bool turn(Matrix& a, int64_t n, int64_t p, int64_t q) {
  const double both = a(p, q);
  if (!(std::fabs(both) > 1e-17 * (std::fabs(a(p, p)) + std::fabs(a(q, q))))) return false;
  const double ratio = (a(q, q) - a(p, p)) / (2 * both);
  const double tangent = (ratio < 0 ? -1 : 1) / (std::fabs(ratio) + std::hypot(1, ratio));
  const double cosine = 1 / std::hypot(1, tangent), sine = cosine * tangent;
  for (int64_t i = 0; i < n; ++i) {
    const double x = a(p, i), y = a(q, i);
    a(p, i) = cosine * x - sine * y;
    a(q, i) = sine * x + cosine * y;
  }
  for (int64_t i = 0; i < 2 * n; ++i) {
    const double x = a(i, p), y = a(i, q);
    a(i, p) = cosine * x - sine * y;
    a(i, q) = sine * x + cosine * y;
  }
  return true;
}

// The largest element of a vector becomes positive.
double sign_of(Matrix& a, int64_t n, int64_t column) {
  double most = 0;
  for (int64_t i = n; i < 2 * n; ++i)
    if (std::fabs(a(i, column)) > std::fabs(most)) most = a(i, column);
  return most < 0 ? -1 : 1;
}

Result<std::vector<Tensor>> eigh_reference(const Node& node,
                                           std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const auto [batch, n, columns] = matrix_sizes(*operands[0]);
  const bool is_upper = node.bool_attr("upper");
  for (int64_t b = 0; b < batch; ++b) {
    Matrix given(*operands[0], b, n, n), a(2 * n, n);
    for (int64_t i = 0; i < n * n; ++i) {
      const int64_t least = std::min(i / n, i % n), most = std::max(i / n, i % n);
      a(i / n, i % n) = is_upper ? given(least, most) : given(most, least);
    }
    for (int64_t i = 0; i < n; ++i) a(n + i, i) = 1;
    bool is_turned = true;
    for (int sweep = 0; sweep < kMostSweeps && is_turned; ++sweep) {
      is_turned = false;
      for (int64_t p = 0; p < n; ++p)
        for (int64_t q = p + 1; q < n; ++q) is_turned |= turn(a, n, p, q);
    }
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t k) { return a(i, i) < a(k, k); });
    for (int64_t j = 0; j < n; ++j) {
      const int64_t from = order[static_cast<size_t>(j)];
      if (!node.bool_attr("vectors")) {
        put(result, b * n + j, a(from, from));
        continue;
      }
      const int64_t first = b * (n + 1);
      const double sign = sign_of(a, n, from);
      for (int64_t i = 0; i < n; ++i) put(result, (first + i) * n + j, sign * a(n + i, from));
      put(result, (first + n) * n + j, a(from, from));
    }
  }
  return std::vector<Tensor>{std::move(result)};
}

// Eigenvalues and vectors; the latter null without `vectors`.
std::vector<Term> eigen(const Aten& aten, bool has_vectors) {
  const ImportCall& call = aten.call();
  const std::string triangle = call.string_attr("UPLO");
  const bool is_upper = triangle == "U" || triangle == "u";
  const Term a = aten.tensor(call.schema->args.front().name);
  const Term packed = apply("eigh", {a}, {{"vectors", has_vectors}, {"upper", is_upper}});
  if (!packed || !has_vectors) return {packed, aten.null()};
  const Dim n = Aten::size(packed, -1);
  return {aten("select.int", {packed, -2, n}), rows_from(aten, packed, 0, n)};
}

constexpr auto kEigh = [](const Aten& aten) { return eigen(aten, true); };
constexpr auto kEigvalsh = [](const Aten& aten) { return eigen(aten, false)[0]; };
constexpr auto kEither = [](const Aten& aten) -> std::vector<Term> {
  std::vector<Term> parts = eigen(aten, aten.call().bool_attr("compute_v", true));
  if (parts[0] && !parts[1]) parts[1] = aten.full({Dim(0)}, 0, parts[0].dtype());
  return parts;
};

std::vector<Example> eigh_examples() {
  const auto example = [](std::vector<int64_t> shape, bool has_vectors, bool is_upper,
                          DType dtype = DType::f32) {
    return Example{.operands = {{.dtype = dtype, .shape = std::move(shape)}},
                   .attrs = {{"vectors", has_vectors}, {"upper", is_upper}}};
  };
  return {example({3, 3}, true, false),
          example({2, 7, 7}, true, true),
          example({2, 1, 13, 13}, true, false),
          example({5, 5}, false, false),
          example({2, 1, 1}, true, false),
          example({2, 2}, false, true),
          example({2, 0, 0}, true, false),
          example({0, 3, 3}, false, false),
          example({2, 19, 19}, true, true, DType::f64)};
}

}  // namespace

std::vector<OpDef> define_eigh() {
  return {{
      .name = "eigh",
      .summary = "eigenvectors above eigenvalues, smallest first; without `vectors` those alone",
      .doc = "Reads one triangle of a symmetric matrix. The largest element of each vector is "
             "positive. Which vectors belong to equal values, nothing says.",
      .operands = {{"self"}},
      .attrs = {{.name = "vectors", .kind = AttrKind::boolean},
                {.name = "upper", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_eigh,
      .demands = eigh_demands,
      .reference = eigh_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, "
                             "Tensor eigenvectors)",
                   .build = composed<kEigh>},
                  {.schema = "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> "
                             "(Tensor eigenvalues, Tensor eigenvectors)",
                   .build = composed<kEither>},
                  {.schema = "linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
                   .build = composed<kEigvalsh>}},
      .examples = eigh_examples(),
  }};
}

}  // namespace lathe
