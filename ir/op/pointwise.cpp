// Inference of pointwise ops (see pointwise.h).
#include "ir/op/pointwise.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Result<std::vector<TensorType>> infer_pointwise(const Node& node, DType dtype) {
  LATHE_TRY(Shape shape, broadcast_operands(node));
  return std::vector<TensorType>{{dtype, std::move(shape)}};
}

}  // namespace

Result<std::vector<TensorType>> infer_same(const Node& node) {
  return infer_pointwise(node, promote_operands(operand_types(node)));
}

Result<std::vector<TensorType>> infer_float(const Node& node) {
  return infer_pointwise(node, to_float(promote_operands(operand_types(node))));
}

Result<std::vector<TensorType>> infer_bool(const Node& node) {
  return infer_pointwise(node, DType::b8);
}

namespace {

Result<std::vector<TensorType>> infer_checked(const Node& node, bool (*takes)(DType),
                                              const char* what) {
  const DType dtype = promote_operands(operand_types(node));
  if (takes(dtype)) return infer_pointwise(node, dtype);
  return Diag{code::kDtypeMismatch, node.loc,
              fmt::format("'{}' takes {}, got {}", node.op->name, what, dtype_name(dtype))};
}

}  // namespace

Result<std::vector<TensorType>> infer_of_floats(const Node& node) {
  return infer_checked(node, is_float, "floats");
}

Result<std::vector<TensorType>> infer_of_bits(const Node& node) {
  return infer_checked(node, [](DType dtype) { return !is_float(dtype); }, "integers and bools");
}

Result<std::vector<TensorType>> infer_of_numbers(const Node& node) {
  return infer_checked(node, [](DType dtype) { return dtype != DType::b8; }, "numbers");
}

Result<std::vector<TensorType>> infer_difference(const Node& node) {
  for (Value operand : node.operands)
    if (operand.type().dtype == DType::b8)
      return Diag{code::kDtypeMismatch, node.loc,
                  fmt::format("'{}' takes numbers, got bool; use logical_not to invert a mask, or "
                              "logical_xor of two",
                              node.op->name)};
  return infer_same(node);
}

DType pointwise_dtype(const Node& node) {
  const DType result = node.types.front().dtype;
  const DType promoted = promote_operands(operand_types(node));
  return is_float(result) && !is_float(promoted) ? result : promoted;
}

bool is_rounded_first(const TensorType& own, DType dtype) {
  return own.rank() > 0 && !is_float(own.dtype) && is_half(dtype);
}

loop::Expr pointwise_operand(ElementContext& context, const Node& node, size_t i,
                             std::span<const loop::Expr> index) {
  const DType dtype = pointwise_dtype(node);
  loop::Expr own = context.broadcast_operand(node, static_cast<int>(i), index);
  if (is_rounded_first(node.operands[i].type(), dtype)) own = loop::cast(own, dtype);
  return loop::cast(own, compute_dtype(dtype));
}

}  // namespace lathe
