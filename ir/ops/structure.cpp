// The nodes that hold a graph together: parameters, constants, sizes as tensors, fused groups.
#include <fmt/format.h>

#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr Absent kNoOperands{"no operand to differentiate by"};

size_t num_values(const Node& node) {
  const Attr& value = node.attr("value");
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return reals->size();
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  return integers ? integers->size() : 0;
}

Result<std::vector<TensorType>> infer_constant(const Node& node) {
  const TensorType type{node.dtype_attr("dtype", DType::f32), node.dims_attr("shape")};
  if (node.is_none("name") == node.is_none("value")) {
    return Diag{code::kAttribute, node.loc,
                "'constant' takes either the 'name' of a weight or its 'value'"};
  }
  const size_t count = num_values(node);
  const auto elements = type.static_elements();
  if (!node.is_none("value") && count != 1 &&
      (!elements || *elements != static_cast<int64_t>(count))) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'constant' of shape {} has {} values", to_string(type.shape), count)};
  }
  if (const auto value = misfit(node.attr("value"), type.dtype))
    return Diag{code::kBadValue, node.loc,
                fmt::format("'constant' of {} cannot hold {}", dtype_name(type.dtype), *value)};
  return std::vector<TensorType>{type};
}

Result<std::vector<Tensor>> constant_reference(const Node& node, std::span<const Tensor* const>) {
  if (node.is_none("value")) {
    return Diag{code::kMissingWeight, node.loc,
                fmt::format("no data for weight '{}'", node.string_attr("name"))};
  }
  const TensorType& type = node.types.front();
  return std::vector<Tensor>{literal_tensor(node.attr("value"), type.dtype, type.static_shape())};
}

// A literal as a chain of selects over its position; literals are short. A weight is a buffer of
// the program and has no element form.
Expr lower_constant(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const TensorType& type = node.types.front();
  const auto count = static_cast<int64_t>(num_values(node));
  if (count == 0) return Expr{};
  const Tensor values = literal_tensor(node.attr("value"), type.dtype, {count});
  Expr result = context.literal(values, count - 1);
  if (count == 1) return result;
  const Expr position = context.flatten(index, type.shape);
  for (int64_t i = count - 1; i-- > 0;) {
    result = select(eq(position, context.integer(i)), context.literal(values, i), result);
  }
  return result;
}

OpDef constant() {
  return {
      .name = "constant",
      .summary = "a weight of the module by its name, or a literal; one value fills the shape",
      .operands = {},
      .attrs = {{.name = "name", .kind = AttrKind::string, .is_optional = true},
                {.name = "value", .kind = AttrKind::numbers, .is_optional = true},
                {.name = "dtype", .kind = AttrKind::dtype},
                {.name = "shape", .kind = AttrKind::dims}},
      .traits = {.op_class = OpClass::source},
      .infer = infer_constant,
      .reference = constant_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_constant,
      .derivative = kNoOperands,
      .imports = {},
      .examples = {{.attrs = {{"value", std::vector<double>{1, -2, 0.5}},
                              {"dtype", DType::f32},
                              {"shape", std::vector<int64_t>{3}}}},
                   {.attrs = {{"value", std::vector<double>{7}},
                              {"dtype", DType::i64},
                              {"shape", std::vector<int64_t>{2, 2}}}}},
  };
}

OpDef size_value() {
  return {
      .name = "size_value",
      .summary = "a symbolic size as a rank-0 tensor",
      .operands = {},
      .attrs = {{.name = "value", .kind = AttrKind::dim},
                {.name = "dtype", .kind = AttrKind::dtype, .default_value = DType::i64}},
      .traits = {.op_class = OpClass::source},
      .infer = [](const Node& node) -> Result<std::vector<TensorType>> {
        return std::vector<TensorType>{{node.dtype_attr("dtype", DType::i64), {}}};
      },
      .reference = [](const Node& node,
                      std::span<const Tensor* const>) -> Result<std::vector<Tensor>> {
        Tensor result = result_tensor(node);
        put(result, 0, node.int_attr("value"));
        return std::vector<Tensor>{std::move(result)};
      },
      .decompose = Absent{"a core op"},
      .lower =
          [](ElementContext& context, const Node& node, int, std::span<const Expr>) {
            return context.count(std::get<Dim>(node.attr("value")), node.types.front().dtype);
          },
      .derivative = kNoOperands,
      .imports = {},
      .examples = {{.attrs = {{"value", int64_t{12}}}}},
  };
}

OpDef param() {
  return {
      .name = "param",
      .summary = "an input of its graph",
      .operands = {},
      .attrs = {},
      .traits = {.op_class = OpClass::structure},
      .infer = Absent{"the graph gives its type"},
      .reference = Absent{"the run gives its value"},
      .decompose = Absent{"an input"},
      .lower = Absent{"an input is a buffer of the program"},
      .derivative = kNoOperands,
      .imports = {},
      .examples = {},
  };
}

OpDef fused() {
  return {
      .name = "fused",
      .summary = "a group that is computed in one launch: its body, applied to the operands",
      .operands = {{"captured", OperandKind::tensor_list}},
      .attrs = {},
      .num_results = -1,
      .traits = {.op_class = OpClass::structure},
      .infer = Absent{"the outputs of its body"},
      .reference = Absent{"the evaluator runs its body"},
      .decompose = Absent{"its body says it"},
      .lower = Absent{"lowering composes the elements of its body"},
      .derivative = Absent{"derivatives are taken before fusion"},
      .imports = {},
      .examples = {},
  };
}

}  // namespace

std::vector<OpDef> define_structure() { return {constant(), size_value(), param(), fused()}; }

}  // namespace lathe
