// clamp: a value between two optional bounds.
#include <utility>

#include "ir/op/arithmetic.h"
#include "ir/op/pointwise.h"

namespace lathe {
namespace {

using loop::Expr;

// PyTorch's order: where min exceeds max, the result is max.
template <class T, class Get>
T clamped(const Node& node, T x, Get&& bound) {
  using arithmetic::max, arithmetic::min;
  if (node.operands[1]) x = max(x, bound(1));
  if (node.operands[2]) x = min(x, bound(2));
  return x;
}

Result<std::vector<Tensor>> clamp_reference(const Node& node,
                                            std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < operands.size(); ++i) {
    strides.push_back(node.operands[i] ? broadcast_strides(operands[i]->shape, result.shape)
                                       : std::vector<int64_t>(result.shape.size(), 0));
  }
  walk(result.shape, strides, [&](int64_t position, std::span<const int64_t> offsets, auto) {
    if (is_float(result.dtype)) {
      const auto get = [&](size_t i) { return operands[i]->get(offsets[i]); };
      put(result, position, clamped<double>(node, get(0), get));
    } else {
      const auto get = [&](size_t i) {
        return wrap(result.dtype, operands[i]->integers[static_cast<size_t>(offsets[i])]);
      };
      put(result, position, clamped<int64_t>(node, get(0), get));
    }
  });
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Value> decompose_clamp(Builder& b, const Node& node) {
  Term x = operand_term(b, node, 0);
  if (node.operands[1]) x = max(x, operand_term(b, node, 1));
  if (node.operands[2]) x = min(x, operand_term(b, node, 2));
  return {cast(x, node.types.front().dtype)};
}

Expr lower_clamp(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = compute_dtype(node.types.front().dtype);
  const auto element = [&](int i) {
    return cast(context.broadcast_operand(node, i, index), dtype);
  };
  Expr x = element(0);
  if (node.operands[1]) x = max(x, element(1));
  if (node.operands[2]) x = min(x, element(2));
  return cast(x, node.types.front().dtype);
}

// Where a bound took over, the gradient is the bound's.
std::vector<Value> clamp_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const Term g{b, gradients[0]};
  Term x = operand_term(b, node, 0);
  Term to_x = g, to_min = g * 0.0, to_max = to_min;
  if (node.operands[1]) {
    const Term low = operand_term(b, node, 1);
    to_min = select(lt(x, low), g, 0.0);
    to_x = select(lt(x, low), 0.0, g);
    x = max(x, low);
  }
  if (node.operands[2]) {
    const Term high = operand_term(b, node, 2);
    to_max = select(gt(x, high), g, 0.0);
    to_x = select(gt(x, high), 0.0, to_x);
    to_min = select(gt(x, high), 0.0, to_min);
  }
  const auto shaped = [&](Term gradient, Value operand) {
    return operand ? Value(sum_to(gradient, operand.type())) : Value{};
  };
  return {shaped(to_x, node.operands[0]), shaped(to_min, node.operands[1]),
          shaped(to_max, node.operands[2])};
}

OpDef clamp() {
  const ExampleTensor self{.shape = {2, 5}}, none{.is_none = true};
  const ExampleTensor low{.shape = {}, .values = {-0.5}}, high{.shape = {}, .values = {1}};
  return {
      .name = "clamp",
      .summary = "min(max(self, min), max), either bound optional; NaN stays NaN",
      .operands = {{"self"},
                   {"min", OperandKind::optional_tensor},
                   {"max", OperandKind::optional_tensor}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise},
      .infer = infer_of_numbers,
      .reference = clamp_reference,
      .decompose = decompose_clamp,
      .lower = lower_clamp,
      .derivative = clamp_gradient,
      .imports = {{"clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor"},
                  {"clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor"},
                  {.schema = "clamp_min(Tensor self, Scalar min) -> Tensor"},
                  {.schema = "clamp_max(Tensor self, Scalar max) -> Tensor"}},
      .examples = {{.operands = {self, low, high}},
                   {.operands = {self, none, high}},
                   {.operands = {{.dtype = DType::i64, .shape = {4}, .low = -5, .high = 5},
                                 {.dtype = DType::i64, .shape = {}, .values = {0}},
                                 none}},
                   {.operands = {self, {.shape = {5}}, {.shape = {2, 1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_clamp() { return {clamp()}; }

}  // namespace lathe
