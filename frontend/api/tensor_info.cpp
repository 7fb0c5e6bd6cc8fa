// Shapes for the C ABI: see tensor_info.h.
#include "frontend/api/tensor_info.h"

namespace lathe {

std::unique_ptr<TensorInfo> describe(std::string name, const TensorType& type) {
  auto tensor = std::make_unique<TensorInfo>();
  tensor->name = std::move(name);
  tensor->shape = type.static_shape();
  int64_t bytes = type.static_elements().value_or(0) * dtype_bytes(type.dtype);
  tensor->info = {tensor->name.c_str(), static_cast<lathe_dtype>(type.dtype), type.rank(),
                  tensor->shape.data(), static_cast<uint64_t>(bytes)};
  return tensor;
}

void SizedTensors::add(TensorInfo& tensor, const TensorType& type) {
  Sized sized{&tensor, {}, tape_.add(type.num_elements() * Dim(dtype_bytes(type.dtype)))};
  for (const Dim& dim : type.shape) sized.extents.push_back(tape_.add(dim));
  sized_.push_back(std::move(sized));
}

bool SizedTensors::evaluate(std::span<const int64_t> sizes) { return tape_.run(sizes, values_); }

void SizedTensors::show() {
  for (const Sized& sized : sized_) {
    for (size_t i = 0; i < sized.extents.size(); ++i)
      sized.tensor->shape[i] = values_[sized.extents[i]];
    sized.tensor->info.num_bytes = static_cast<uint64_t>(values_[sized.num_bytes]);
  }
}

}  // namespace lathe
