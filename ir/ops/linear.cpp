// Products with a sum or a transposed weight: linear, addmm, baddbmm. They decompose to matmul.
#include <fmt/format.h>

#include "ir/op/contract.h"
#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/promotion.h"
#include "ir/op/term.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr Absent kThroughMatmul{"decomposes into matmul"};

// --- linear

Result<std::vector<TensorType>> infer_linear(const Node& node) {
  LATHE_DO(check_takes_numbers(node));
  const TensorType &input = node.operands[0].type(), &weight = node.operands[1].type();
  if (weight.rank() != 2 || input.rank() < 1) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'linear' needs an input of rank 1 or more and a matrix as weight, got "
                            "{} and {}",
                            to_string(input.shape), to_string(weight.shape))};
  }
  const Dim &have = input.shape.back(), &want = weight.shape[1];
  if (differ(have, want)) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'linear' got {} features for a weight of {}", have.str(), want.str())};
  }
  Shape shape = input.shape;
  shape.back() = weight.shape[0];
  if (node.operands[2]) {
    const Shape& bias = node.operands[2].type().shape;
    if (bias != Shape{weight.shape[0]}) {
      return Diag{code::kShapeMismatch, node.loc,
                  fmt::format("'linear' needs a bias of shape [{}], got {}", weight.shape[0].str(),
                              to_string(bias))};
    }
  }
  return std::vector<TensorType>{{promote_operands(operand_types(node)), std::move(shape)}};
}

std::vector<Guard> linear_demands(const Node& node) {
  const Shape &input = node.operands[0].type().shape, &weight = node.operands[1].type().shape;
  Demands demands(node);
  demands.equal(input.back(), weight[1], "needs as many features as its weight has");
  return demands.take();
}

template <class T>
Tensor transposed_product(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor &input = *operands[0], &weight = *operands[1];
  Tensor result = result_tensor(node);
  const int64_t n = weight.shape[0], k = weight.shape[1];
  const int64_t m = n == 0 ? 0 : result.num_elements() / n;
  contract<T>(
      m, n, k, [&](int64_t i, int64_t p) { return element<T>(input, i * k + p); },
      [&](int64_t p, int64_t j) { return element<T>(weight, j * k + p); },
      [&](int64_t i, int64_t j, T sum) {
        put(result, i * n + j, node.operands[2] ? sum + element<T>(*operands[2], j) : sum);
      });
  return result;
}

std::vector<Value> decompose_linear(Builder& b, const Node& node) {
  const Term input = operand_term(b, node, 0), weight = operand_term(b, node, 1);
  const Term rows = input.rank() == 1 ? reshape(input, {1, input.shape()[0]}) : input;
  const Term product = reshape(matmul(rows, transpose_last(weight)), node.types.front().shape);
  const Term bias = operand_term(b, node, 2);
  return {bias ? product + bias : product};
}

// All rows of the input as one matrix.
Term as_matrix(Term x) {
  Dim rows = 1;
  for (int d = 0; d + 1 < x.rank(); ++d) rows = rows * x.shape()[static_cast<size_t>(d)];
  return reshape(x, {rows, x.rank() > 0 ? x.shape().back() : Dim(1)});
}

std::vector<Value> linear_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const Term g = as_matrix({b, gradients[0]});
  const Term input = operand_term(b, node, 0), weight = operand_term(b, node, 1);
  return {reshape(matmul(g, weight), input.shape()), matmul(transpose_last(g), as_matrix(input)),
          node.operands[2] ? Value(sum(g, {0}, false)) : Value{}};
}

OpDef linear() {
  return {
      .name = "linear",
      .summary = "input times the transposed weight, plus bias",
      .operands = {{"input"}, {"weight"}, {"bias", OperandKind::optional_tensor}},
      .attrs = {},
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_linear,
      .demands = linear_demands,
      .reference = typed_reference<transposed_product<double>, transposed_product<uint64_t>>,
      .decompose = decompose_linear,
      .lower = kThroughMatmul,
      .derivative = linear_gradient,
      .imports = {{"linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"}},
      .examples = {{.operands = {{.shape = {2, 3, 4}}, {.shape = {5, 4}}, {.shape = {5}}}},
                   {.operands = {{.shape = {4}}, {.shape = {3, 4}}, {.is_none = true}}}},
  };
}

// --- beta * self + alpha * (a @ b)

Result<std::vector<TensorType>> infer_added(const Node& node) {
  LATHE_DO(check_takes_numbers(node));
  const TensorType &a = node.operands[1].type(), &b = node.operands[2].type();
  const int rank = node.op->name == "addmm" ? 2 : 3;
  const auto at = [](const TensorType& type, int from_end) {
    return type.shape[type.shape.size() - static_cast<size_t>(from_end)];
  };
  if (a.rank() != rank || b.rank() != rank || differ(at(a, 1), at(b, 2)) ||
      (rank == 3 && differ(at(a, 3), at(b, 3)))) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' cannot multiply {} and {}", node.op->name, to_string(a.shape),
                            to_string(b.shape))};
  }
  Shape shape = a.shape;
  shape.back() = at(b, 1);
  const auto joined = broadcast(node.operands[0].type().shape, shape);
  if (!joined || *joined != shape) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' cannot add {} to {}", node.op->name,
                            to_string(node.operands[0].type().shape), to_string(shape))};
  }
  return std::vector<TensorType>{{promote_operands(operand_types(node)), std::move(shape)}};
}

std::vector<Guard> added_demands(const Node& node) {
  const Shape &a = node.operands[1].type().shape, &b = node.operands[2].type().shape;
  Demands demands(node);
  demands.equal(a.back(), b[b.size() - 2], "needs equal inner dims");
  if (a.size() == 3) demands.equal(a[0], b[0], "needs equal batches");
  return demands.take();
}

template <class T>
Tensor added_product(const Node& node, std::span<const Tensor* const> operands) {
  const Tensor &self = *operands[0], &a = *operands[1], &b = *operands[2];
  Tensor result = result_tensor(node);
  const size_t rank = result.shape.size();
  const int64_t m = result.shape[rank - 2], n = result.shape[rank - 1], k = a.shape.back();
  const T alpha = scalar_attr<T>(node, "alpha"), beta = scalar_attr<T>(node, "beta");
  for (int64_t batch = 0; batch < (rank == 3 ? result.shape[0] : 1); ++batch) {
    contract<T>(
        m, n, k, [&](int64_t i, int64_t p) { return element<T>(a, (batch * m + i) * k + p); },
        [&](int64_t p, int64_t j) { return element<T>(b, (batch * k + p) * n + j); },
        [&](int64_t i, int64_t j, T sum) { put(result, (batch * m + i) * n + j, alpha * sum); });
  }
  if (beta == 0) return result;  // NaN in self does not spread
  walk(result.shape, {broadcast_strides(self.shape, result.shape)},
       [&](int64_t position, std::span<const int64_t> at, auto) {
         put(result, position, element<T>(result, position) + beta * element<T>(self, at[0]));
       });
  return result;
}

Term scaled(Builder& b, const Node& node, Term x, std::string_view attr) {
  if (is_float(x.dtype())) {
    const double factor = node.float_attr(attr);
    return factor == 1 ? x : x * factor;
  }
  const auto factor = scalar_attr<int64_t>(node, attr);
  return factor == 1 ? x : x * Term{b, b.integer(factor, x.dtype())};
}

std::vector<Value> decompose_added(Builder& b, const Node& node) {
  const Term product = matmul(operand_term(b, node, 1), operand_term(b, node, 2));
  const Term result = scaled(b, node, product, "alpha");
  const bool is_real = is_float(product.dtype());
  if (is_real ? node.float_attr("beta") == 0 : scalar_attr<int64_t>(node, "beta") == 0)
    return {result};
  return {result + scaled(b, node, operand_term(b, node, 0), "beta")};
}

std::vector<Value> added_gradient(Builder& builder, const Node& node,
                                  std::span<const Value> gradients) {
  const Term g{builder, gradients[0]};
  const Term scaled = g * node.float_attr("alpha");
  const Term a = operand_term(builder, node, 1), b = operand_term(builder, node, 2);
  return {sum_to(g * node.float_attr("beta"), node.operands[0].type()),
          matmul(scaled, transpose_last(b)), matmul(transpose_last(a), scaled)};
}

OpDef added(std::string name, const std::string& first, const std::string& second,
            std::vector<Example> examples) {
  return {
      .name = name,
      .summary = "beta * self + alpha * (" + first + " @ " + second + ")",
      .doc =
          "With beta = 0, self is not read: its NaNs do not spread. Fractions of alpha and beta "
          "are "
          "cut off for integers.",
      .operands = {{"self"}, {first}, {second}},
      .attrs = {{.name = "beta", .kind = AttrKind::number, .default_value = 1.0},
                {.name = "alpha", .kind = AttrKind::number, .default_value = 1.0}},
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_added,
      .demands = added_demands,
      .reference = typed_reference<added_product<double>, added_product<uint64_t>>,
      .decompose = decompose_added,
      .lower = kThroughMatmul,
      .derivative = added_gradient,
      .imports = {{name + "(Tensor self, Tensor " + first + ", Tensor " + second +
                   ", *, Scalar beta=1, Scalar alpha=1) -> Tensor"}},
      .examples = std::move(examples),
  };
}

}  // namespace

std::vector<OpDef> define_linear() {
  return {
      linear(),
      added("addmm", "mat1", "mat2",
            {{.operands = {{.shape = {2}}, {.shape = {3, 4}}, {.shape = {4, 2}}}},
             {.operands = {{.shape = {3, 1}}, {.shape = {3, 4}}, {.shape = {4, 2}}},
              .attrs = {{"beta", 0.5}, {"alpha", 2.0}}}}),
      added("baddbmm", "batch1", "batch2",
            {{.operands = {{.shape = {2, 3, 1}}, {.shape = {2, 3, 4}}, {.shape = {2, 4, 2}}}},
             {.operands = {{.dtype = DType::i64, .shape = {1}, .low = -9, .high = 9},
                           {.dtype = DType::i64, .shape = {1, 2, 3}, .low = -9, .high = 9},
                           {.dtype = DType::i64, .shape = {1, 3, 2}, .low = -9, .high = 9}},
              .attrs = {{"beta", 0.5}, {"alpha", 2.5}}}}),
  };
}

}  // namespace lathe
