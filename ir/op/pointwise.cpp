// Inference of pointwise ops (see pointwise.h).
#include "ir/op/pointwise.h"

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

DType pointwise_dtype(const Node& node) {
  const DType result = node.types.front().dtype;
  const DType promoted = promote_operands(operand_types(node));
  return is_float(result) && !is_float(promoted) ? result : promoted;
}

}  // namespace lathe
