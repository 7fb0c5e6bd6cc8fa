// Dense tensors for reference implementations (see dense.h).
#include "ir/op/dense.h"

namespace lathe {

int64_t wrap(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::b8:
      return value != 0;
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::i32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

Tensor result_tensor(const Node& node, int result) {
  const TensorType& type = node.types[static_cast<size_t>(result)];
  return Tensor::zeros(type.dtype, type.static_shape());
}

int64_t num_elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& shape,
                                       const std::vector<int64_t>& result) {
  const std::vector<int64_t> own = row_major_strides(shape);
  std::vector<int64_t> strides(result.size(), 0);
  const size_t lead = result.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) strides[lead + d] = own[d];
  }
  return strides;
}

void put(Tensor& tensor, int64_t position, double value) {
  if (is_float(tensor.dtype)) {
    tensor.floats[static_cast<size_t>(position)] = value;
  } else {
    tensor.set(position, value);
  }
}

void put(Tensor& tensor, int64_t position, int64_t value) {
  if (is_float(tensor.dtype)) {
    tensor.floats[static_cast<size_t>(position)] = static_cast<double>(value);
  } else {
    tensor.integers[static_cast<size_t>(position)] = wrap(tensor.dtype, value);
  }
}

void copy_element(Tensor& to, int64_t position, const Tensor& from, int64_t source) {
  if (is_float(from.dtype)) {
    put(to, position, from.floats[static_cast<size_t>(source)]);
  } else {
    put(to, position, from.integers[static_cast<size_t>(source)]);
  }
}

}  // namespace lathe
