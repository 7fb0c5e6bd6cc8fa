// Type promotion and broadcasting of operands (see promotion.h).
#include "ir/op/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/graph/op_def.h"
#include "ir/op/element.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

int category(DType dtype) { return is_float(dtype) ? 2 : is_integer(dtype) ? 1 : 0; }

// The dtype of `strong`, unless `weak` is of a higher category.
DType raise(std::optional<DType> strong, std::optional<DType> weak) {
  if (!strong || (weak && category(*weak) > category(*strong))) return weak.value_or(DType::f32);
  return *strong;
}

}  // namespace

DType promote_operands(std::span<const TensorType> types) {
  std::optional<DType> with_dims, without_dims;
  for (const TensorType& type : types) {
    std::optional<DType>& result = type.rank() > 0 ? with_dims : without_dims;
    result = result ? promote(*result, type.dtype) : type.dtype;
  }
  return raise(with_dims, without_dims);
}

std::vector<TensorType> operand_types(const Node& node) {
  std::vector<TensorType> types;
  for (Value operand : node.operands) {
    if (operand) types.push_back(operand.type());
  }
  return types;
}

DType weak_scalar_dtype(const Attr& scalar, std::span<const TensorType> others) {
  const DType own = std::holds_alternative<double>(scalar) ? DType::f32
                    : std::holds_alternative<bool>(scalar) ? DType::b8
                                                           : DType::i64;
  if (others.empty()) return own;
  const DType dtype = raise(promote_operands(others), own);
  // Only where a tensor with dims decides does the scalar's own dtype not count: a condition's dims
  // decide nothing.
  const bool has_dims = std::any_of(others.begin(), others.end(), [&](const TensorType& type) {
    return type.rank() > 0 && category(type.dtype) == category(dtype);
  });
  return has_dims ? compute_dtype(dtype) : dtype;
}

Result<Shape> broadcast_operands(const Node& node) {
  Shape result;
  for (Value operand : node.operands) {
    if (!operand) continue;
    int bad_dim = 0;
    auto joined = broadcast(result, operand.type().shape, &bad_dim);
    if (!joined) {
      return Diag{
          code::kShapeMismatch, node.loc,
          fmt::format("'{}' cannot broadcast {} with {} in dim {} from the end", node.op->name,
                      to_string(result), to_string(operand.type().shape), bad_dim)};
    }
    result = std::move(*joined);
  }
  return result;
}

namespace {

Status check_takes(const Node& node, bool is_taken, const char* what) {
  if (is_taken) return Ok{};
  return Diag{code::kDtypeMismatch, node.loc,
              fmt::format("'{}' takes {}, got {}; cast '{}' to f32 first", node.op->name, what,
                          dtype_name(node.operands[0].type().dtype), node.op->operands[0].name)};
}

}  // namespace

Status check_takes_floats(const Node& node) {
  return check_takes(node, is_float(node.operands[0].type().dtype), "floats");
}

Status check_takes_numbers(const Node& node) {
  return check_takes(node, node.operands[0].type().dtype != DType::b8, "numbers");
}

DType to_float(DType dtype) { return is_float(dtype) ? dtype : DType::f32; }

}  // namespace lathe
