// PyTorch's type promotion over the operands of one operation.
//
// Tensors with dims decide the dtype; rank-0 tensors and then Python scalars only raise its
// category (bool < integer < float). So f16[3] + f32[] is f16, i64[3] + f32[] is f32.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// The dtype in which an operation over `types` runs. Not for an empty span (f32).
DType promote_operands(std::span<const TensorType> types);
// The types of the node's non-null operands, in order.
std::vector<TensorType> operand_types(const Node& node);

// The dtype of the constant that stands for a Python scalar (bool, int64_t or double in `scalar`)
// beside `others`: promote_operands over all of them then gives what PyTorch gives. Beside a half
// tensor it is f32, because PyTorch does not round the scalar to the half type either.
DType weak_scalar_dtype(const Attr& scalar, std::span<const TensorType> others);

// The broadcast shape of all operands; the Diag names the node's op and the two shapes.
Result<Shape> broadcast_operands(const Node& node);
// Whether the first operand is a float, or a number: what PyTorch's kernels of the op take. The
// Diag names the cast that would make it one.
Status check_takes_floats(const Node& node);
Status check_takes_numbers(const Node& node);
// f32 for integers and bools (PyTorch's default dtype), the dtype itself for floats.
DType to_float(DType dtype);

}  // namespace lathe
