// triangular_solve: from one corner of a triangle to the other.
#include <fmt/format.h>

#include <utility>

#include "ir/op/dense.h"
#include "ir/op/matrix.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// B must have A's batch, and a row for each of its rows.
Shape wanted_shape(const Node& node) {
  const Shape& b = node.operands[1].type().shape;
  return with_matrix(self_type(node).shape, self_type(node).shape.back(), b.back());
}

Result<std::vector<TensorType>> infer_triangular_solve(const Node& node) {
  LATHE_DO(check_square(node, 0));
  LATHE_DO(check_matrix(node, 1));
  const TensorType &a = self_type(node), &b = node.operands[1].type();
  if (a.dtype != b.dtype)
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'triangular_solve' needs one dtype, got {} and {}", to_string(a),
                            to_string(b))};
  if (a.rank() != b.rank())
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'triangular_solve' of {} and {}: needs the same batch", to_string(a),
                            to_string(b))};
  LATHE_DO(check_shapes(node, {{"a B", node.operands[1], wanted_shape(node)}}));
  return std::vector<TensorType>{{b.dtype, b.shape}};
}

std::vector<Guard> triangular_solve_demands(const Node& node) {
  Demands demands(node);
  demand_square(demands, self_type(node).shape);
  demands.equal({{"a B", node.operands[1], wanted_shape(node)}});
  return demands.take();
}

Result<std::vector<Tensor>> triangular_solve_reference(const Node& node,
                                                       std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const bool is_upper = node.bool_attr("upper"), has_ones = node.bool_attr("unitriangular");
  const auto [batch, n, count] = matrix_sizes(*operands[1]);
  for (int64_t i = 0; i < batch; ++i) {
    Matrix a(*operands[0], i, n, n), x(*operands[1], i, n, count);
    for (int64_t step = 0; step < n; ++step) {
      const int64_t row = is_upper ? n - 1 - step : step;
      for (int64_t c = 0; c < count; ++c) {
        for (int64_t done = 0; done < step; ++done) {
          const int64_t k = is_upper ? n - 1 - done : done;
          x(row, c) -= a(row, k) * x(k, c);
        }
        if (!has_ones) x(row, c) /= a(row, row);
      }
    }
    x.store(result, i);
  }
  return std::vector<Tensor>{std::move(result)};
}

// X A = B is A^T X^T = B^T, whose triangle is the other one.
Term solved(const Aten& aten, Term a, Term b, bool is_upper, bool is_left) {
  if (!is_left) {
    a = transpose_last(a);
    b = transpose_last(b);
    is_upper = !is_upper;
  }
  const auto [own, right] = in_batches(aten, a, b);
  const Term x = apply("triangular_solve", {own, right},
                       {{"upper", is_upper}, {"unitriangular", aten.attr("unitriangular")}});
  return is_left ? x : transpose_last(x);
}

constexpr auto kSolveTriangular = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  return solved(aten, aten.tensor("self"), aten.tensor("B"), call.bool_attr("upper"),
                call.bool_attr("left", true));
};

// And its coefficients, which PyTorch copies.
constexpr auto kOlderName = [](const Aten& aten) -> std::vector<Term> {
  const Term b = aten.tensor("self"), a = aten.tensor("A");
  const bool is_turned = aten.call().bool_attr("transpose");
  const bool is_upper = aten.call().bool_attr("upper", true);
  const Term own = in_batches(aten, a, b).first;
  if (!own) return {own, own};
  const Term turned = is_turned ? transpose_last(a) : a;
  return {solved(aten, turned, b, is_upper != is_turned, true), aten("clone", {own})};
};

// A solution that does not grow.
Example large_example(int64_t n, int64_t columns, bool is_upper, DType dtype) {
  Example made{
      .operands = {{.dtype = dtype, .shape = {n, n}}, {.dtype = dtype, .shape = {n, columns}}},
      .attrs = {{"upper", is_upper}, {"unitriangular", false}}};
  for (int64_t i = 0; i < n * n; ++i)
    made.operands[0].values.push_back(i % (n + 1) == 0 ? 2 : static_cast<double>(i % 7) / 32);
  return made;
}

}  // namespace

std::vector<OpDef> define_triangular_solve() {
  const auto example = [](std::vector<int64_t> a, std::vector<int64_t> b, bool is_upper,
                          bool has_ones, DType dtype = DType::f32) {
    return Example{.operands = {{.dtype = dtype, .shape = std::move(a), .low = 0.5},
                                {.dtype = dtype, .shape = std::move(b)}},
                   .attrs = {{"upper", is_upper}, {"unitriangular", has_ones}}};
  };
  return {{
      .name = "triangular_solve",
      .summary = "X of A X = B, of one triangle of A",
      .doc = "Of matrices without elements as well. What is divided by zero is not a number.",
      .operands = {{"self"}, {"B"}},
      .attrs = {{.name = "upper", .kind = AttrKind::boolean},
                {.name = "unitriangular",
                 .kind = AttrKind::boolean,
                 .default_value = false,
                 .doc = "the diagonal is of ones, whatever it holds"}},
      .traits = {.op_class = OpClass::matrix, .is_layout_agnostic = false},
      .infer = infer_triangular_solve,
      .demands = triangular_solve_demands,
      .reference = triangular_solve_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {{.schema = "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool "
                             "left=True, bool unitriangular=False) -> Tensor",
                   .build = composed<kSolveTriangular>},
                  {.schema = "triangular_solve(Tensor self, Tensor A, bool upper=True, bool "
                             "transpose=False, bool unitriangular=False) -> (Tensor solution, "
                             "Tensor cloned_coefficient)",
                   .build = composed<kOlderName>}},
      .examples = {example({3, 3}, {3, 2}, true, false), example({2, 5, 5}, {2, 5, 1}, false, true),
                   example({2, 1, 5, 5}, {2, 1, 5, 37}, false, false),
                   example({1, 1}, {1, 1}, true, true), example({0, 3, 3}, {0, 3, 2}, true, false),
                   example({2, 0, 0}, {2, 0, 3}, true, false), example({3, 3}, {3, 0}, true, false),
                   example({7, 7}, {7, 19}, true, false, DType::f64),
                   large_example(37, 41, false, DType::f32),
                   large_example(21, 35, true, DType::f64), large_example(70, 1, true, DType::f32),
                   large_example(67, 2, false, DType::f64)},
  }};
}

}  // namespace lathe
