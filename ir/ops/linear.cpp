// Products with a sum or a transposed weight: linear, addmm, baddbmm. They decompose to matmul.
#include <fmt/format.h>

#include "ir/op/contract.h"
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
  const TensorType &input = node.operands[0].type(), &weight = node.operands[1].type();
  if (weight.rank() != 2 || input.rank() < 1) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'linear' needs an input of rank 1 or more and a matrix as weight, got "
                            "{} and {}",
                            to_string(input.shape), to_string(weight.shape))};
  }
  const Dim &have = input.shape.back(), &want = weight.shape[1];
  if (have.is_const() && want.is_const() && have != want) {
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

Result<std::vector<Tensor>> linear_reference(const Node& node,
                                             std::span<const Tensor* const> operands) {
  const Tensor &input = *operands[0], &weight = *operands[1];
  Tensor result = result_tensor(node);
  const int64_t n = weight.shape[0], k = weight.shape[1];
  const int64_t m = n == 0 ? 0 : result.num_elements() / n;
  contract(
      m, n, k, [&](int64_t i, int64_t p) { return input.get(i * k + p); },
      [&](int64_t p, int64_t j) { return weight.get(j * k + p); },
      [&](int64_t i, int64_t j, double sum) {
        put(result, i * n + j, node.operands[2] ? sum + operands[2]->get(j) : sum);
      });
  return std::vector<Tensor>{std::move(result)};
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
      .reference = linear_reference,
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
  const TensorType &a = node.operands[1].type(), &b = node.operands[2].type();
  const int rank = node.op->name == "addmm" ? 2 : 3;
  const auto at = [](const TensorType& type, int from_end) {
    return type.shape[type.shape.size() - static_cast<size_t>(from_end)];
  };
  if (a.rank() != rank || b.rank() != rank ||
      (at(a, 1).is_const() && at(b, 2).is_const() && at(a, 1) != at(b, 2))) {
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

Result<std::vector<Tensor>> added_reference(const Node& node,
                                            std::span<const Tensor* const> operands) {
  const Tensor &self = *operands[0], &a = *operands[1], &b = *operands[2];
  Tensor result = result_tensor(node);
  const size_t rank = result.shape.size();
  const int64_t m = result.shape[rank - 2], n = result.shape[rank - 1], k = a.shape.back();
  const double alpha = node.float_attr("alpha"), beta = node.float_attr("beta");
  for (int64_t batch = 0; batch < (rank == 3 ? result.shape[0] : 1); ++batch) {
    contract(
        m, n, k, [&](int64_t i, int64_t p) { return a.get((batch * m + i) * k + p); },
        [&](int64_t p, int64_t j) { return b.get((batch * k + p) * n + j); },
        [&](int64_t i, int64_t j, double sum) {
          put(result, (batch * m + i) * n + j, alpha * sum);
        });
  }
  if (beta == 0) return std::vector<Tensor>{std::move(result)};  // NaN in self does not spread
  walk(result.shape, {broadcast_strides(self.shape, result.shape)},
       [&](int64_t position, std::span<const int64_t> at, auto) {
         put(result, position, result.get(position) + beta * self.get(at[0]));
       });
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_added(Builder& b, const Node& node) {
  const double alpha = node.float_attr("alpha"), beta = node.float_attr("beta");
  Term product = matmul(operand_term(b, node, 1), operand_term(b, node, 2));
  if (alpha != 1) product = product * alpha;
  if (beta == 0) return {product};
  const Term self = operand_term(b, node, 0);
  return {product + (beta == 1 ? self : self * beta)};
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
      .doc = "With beta = 0, self is not read: its NaNs do not spread.",
      .operands = {{"self"}, {first}, {second}},
      .attrs = {{.name = "beta", .kind = AttrKind::number, .default_value = 1.0},
                {.name = "alpha", .kind = AttrKind::number, .default_value = 1.0}},
      .traits = {.op_class = OpClass::contraction, .is_layout_agnostic = false},
      .infer = infer_added,
      .reference = added_reference,
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
            {{.operands = {{.shape = {2, 3, 1}}, {.shape = {2, 3, 4}}, {.shape = {2, 4, 2}}}}}),
  };
}

}  // namespace lathe
