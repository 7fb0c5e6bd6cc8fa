// where: a choice by a condition, and masked_fill, which imports as one.
#include <utility>

#include "ir/op/import_call.h"
#include "ir/op/pointwise.h"

namespace lathe {
namespace {

using loop::Expr;
using Types = Result<std::vector<TensorType>>;

Types infer_where(const Node& node) {
  LATHE_TRY(Shape shape, broadcast_operands(node));
  const std::vector<TensorType> types = operand_types(node);
  return std::vector<TensorType>{{promote_operands(std::span(types).subspan(1)), std::move(shape)}};
}

Result<std::vector<Tensor>> where_reference(const Node& node,
                                            std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  std::vector<std::vector<int64_t>> strides;
  for (const Tensor* operand : operands) {
    strides.push_back(broadcast_strides(operand->shape, result.shape));
  }
  walk(result.shape, strides, [&](int64_t position, std::span<const int64_t> offsets, auto) {
    const size_t chosen = operands[0]->get(offsets[0]) != 0 ? 1 : 2;
    copy_element(result, position, *operands[chosen], offsets[chosen]);
  });
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_where(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype;
  const auto element = [&](int i) { return context.broadcast_operand(node, i, index); };
  // One after the other: compilers differ in which argument of a call they evaluate first, and a
  // kernel's buffers stand in the order of their first use.
  const Expr condition = element(0);
  const Expr if_true = cast(element(1), compute_dtype(dtype));
  const Expr if_false = cast(element(2), compute_dtype(dtype));
  return cast(select(ne(condition, constant_like(condition, 0)), if_true, if_false), dtype);
}

std::vector<Value> where_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const Term g{b, gradients[0]}, condition = operand_term(b, node, 0);
  return {{},
          sum_to(select(condition, g, 0.0), node.operands[1].type()),
          sum_to(select(condition, 0.0, g), node.operands[2].type())};
}

// masked_fill keeps self's dtype, whatever the value's.
Result<std::vector<Value>> import_masked_fill(Builder& b, const ImportCall& call) {
  const Value self = call.value("self");
  LATHE_TRY(Value value, import_tensor(b, call, "value"));
  const Term filled = select({b, call.value("mask")}, Term{b, value}, Term{b, self});
  if (call.in_place) return import_node(b, call, "copy", {self, filled});
  return std::vector<Value>{cast(filled, self.type().dtype)};
}

OpDef where() {
  const ExampleTensor mask{.dtype = DType::b8, .shape = {2, 3}, .values = {1, 0, 1, 0, 0, 1}};
  return {
      .name = "where",
      .summary = "self where the condition is true, other elsewhere",
      .operands = {{"condition"}, {"self"}, {"other"}},
      .attrs = {},
      .traits = {.op_class = OpClass::elementwise},
      .infer = infer_where,
      .reference = where_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_where,
      .derivative = where_gradient,
      .imports = {{"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"},
                  {"where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor"},
                  {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor"},
                  {"where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"},
                  {.schema = "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
                   .build = import_masked_fill},
                  {.schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
                   .build = import_masked_fill}},
      .examples = {{.operands = {mask, {.shape = {2, 3}}, {.shape = {2, 3}}}},
                   {.operands = {mask, {.shape = {}}, {.shape = {3}}}},
                   {.operands = {{.dtype = DType::b8, .shape = {}, .values = {1}},
                                 {.dtype = DType::i64, .shape = {2, 1}, .low = 0, .high = 9},
                                 {.shape = {}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_where() { return {where()}; }

}  // namespace lathe
