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
  Sized sized{&tensor, {}, dtype_bytes(type.dtype)};
  for (const Dim& dim : type.shape) sized.extents.push_back(tape_.add(dim));
  sized_.push_back(std::move(sized));
}

void SizedTensors::set_sizes(std::span<const int64_t> sizes) {
  tape_.run(sizes, values_);
  for (const Sized& sized : sized_) {
    int64_t bytes = sized.bytes_each;
    for (size_t i = 0; i < sized.extents.size(); ++i) {
      const int64_t extent = values_[sized.extents[i]];
      sized.tensor->shape[i] = extent;
      bytes *= extent;
    }
    sized.tensor->info.num_bytes = static_cast<uint64_t>(bytes);
  }
}

}  // namespace lathe
