#include "tests/core/sample_ops.h"

#include <algorithm>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Types = Result<std::vector<TensorType>>;
using Tensors = Result<std::vector<Tensor>>;
using Operands = std::span<const Tensor* const>;

constexpr Absent kNone = {"not in the tests"};

Types same_as_first(const Node& node) { return std::vector<TensorType>{node.operand(0).type()}; }

Types infer_add(const Node& node) {
  const TensorType& a = node.operand(0).type();
  const TensorType& b = node.operand(1).type();
  int dim = 0;
  const auto shape = broadcast(a.shape, b.shape, &dim);
  if (!shape)
    return Diag{code::kShapeMismatch, Loc::unknown(),
                "'add' cannot broadcast " + to_string(a.shape) + " with " + to_string(b.shape)};
  return std::vector<TensorType>{{promote(a.dtype, b.dtype), *shape}};
}

Tensors add(const Node& node, Operands operands) {
  Tensor result = Tensor::zeros(node.types[0].dtype, node.types[0].static_shape());
  const double alpha = node.float_attr("alpha", 1);
  const int64_t other_size = operands[1]->num_elements();  // equal shapes, or one element
  for (int64_t i = 0; i < result.num_elements(); ++i)
    result.set(i, operands[0]->get(i) + alpha * operands[1]->get(i % other_size));
  return std::vector<Tensor>{std::move(result)};
}

Tensors relu(const Node&, Operands operands) {
  Tensor result = *operands[0];
  for (double& value : result.floats) value = std::max(value, 0.0);
  return std::vector<Tensor>{std::move(result)};
}

Types infer_constant(const Node& node) {
  return std::vector<TensorType>{{node.dtype_attr("dtype", DType::f32), node.dims_attr("shape")}};
}

Tensors constant(const Node& node, Operands) {
  Tensor result = Tensor::zeros(node.types[0].dtype, node.types[0].static_shape());
  const auto& values = std::get<std::vector<double>>(node.attr("value"));
  for (int64_t i = 0; i < result.num_elements(); ++i)
    result.set(i, values[static_cast<size_t>(i) % values.size()]);
  return std::vector<Tensor>{std::move(result)};
}

Types infer_halve(const Node& node) {
  TensorType half = node.operand(0).type();
  half.shape[0] = Dim::floor_div(half.shape[0], 2);
  return std::vector<TensorType>{half, half};
}

Types infer_cat(const Node& node) {
  TensorType type = node.operand_list(0).front().type();
  const size_t dim = static_cast<size_t>(node.int_attr("dim"));
  type.shape[dim] = 0;
  for (Value part : node.operand_list(0))
    type.shape[dim] = type.shape[dim] + part.type().shape[dim];
  return std::vector<TensorType>{type};
}

Types infer_view(const Node& node) {
  return std::vector<TensorType>{{node.operand(0).type().dtype, node.dims_attr("shape")}};
}

OpDef row(std::string name, OpClass op_class, std::vector<OperandSpec> operands,
          std::vector<AttrSpec> attrs, Slot<InferFn> infer, Slot<ReferenceFn> reference) {
  OpDef op = {.name = std::move(name),
              .summary = "a sample",
              .operands = std::move(operands),
              .attrs = std::move(attrs),
              .traits = {.op_class = op_class},
              .infer = infer,
              .reference = reference,
              .decompose = kNone,
              .lower = kNone,
              .derivative = kNone,
              .imports = {},
              .examples = {}};
  if (op.name == "fused") op.num_results = -1;
  if (op.name == "halve") op.num_results = 2;
  if (op.name == "check") op.num_results = 0;
  op.traits.has_effects = op.name == "check";
  return op;
}

std::vector<OpDef> rows() {
  using K = AttrKind;
  const OperandSpec self = {"self"};
  return {
      row("param", OpClass::structure, {}, {}, kNone, kNone),
      row("constant", OpClass::source, {},
          {{"name", K::string, true},
           {"value", K::numbers, true},
           {"dtype", K::dtype},
           {"shape", K::dims}},
          infer_constant, constant),
      row("fused", OpClass::structure, {{"captured", OperandKind::tensor_list}}, {}, kNone, kNone),
      row("add", OpClass::elementwise, {self, {"other"}}, {{"alpha", K::number, false, 1.0}},
          infer_add, add),
      row("relu", OpClass::elementwise, {self}, {}, same_as_first, relu),
      row("clamp", OpClass::elementwise,
          {self, {"min", OperandKind::optional_tensor}, {"max", OperandKind::optional_tensor}}, {},
          same_as_first, kNone),
      row("cat", OpClass::view, {{"tensors", OperandKind::tensor_list}},
          {{"dim", K::integer, false, int64_t{0}}}, infer_cat, kNone),
      row("halve", OpClass::view, {self}, {}, infer_halve, kNone),
      row("view", OpClass::view, {self}, {{"shape", K::dims}}, infer_view, kNone),
      row("mystery", OpClass::opaque, {self},
          {{"mode", K::string, true},
           {"axes", K::ints, false, std::vector<int64_t>{}},
           {"flags", K::bools, true},
           {"order", K::layout, true},
           {"size", K::dim, true},
           {"keep", K::boolean, false, false},
           {"scales", K::numbers, true}},
          same_as_first, kNone),
      row(
          "check", OpClass::opaque, {self}, {},
          [](const Node&) -> Types { return std::vector<TensorType>{}; }, kNone),
  };
}

}  // namespace

const Registry& sample_ops() {
  static const Registry registry(rows());
  return registry;
}

}  // namespace lathe
