// Taking repeated slices out of tensors and putting them back: see thin_tensor.h.
#include "passes/analysis/thin_tensor.h"

#include <cstring>

#include "ir/op/dense.h"

namespace lathe {
namespace {

// The slices along one dim lie `inner` elements apart, in `outer` groups of `extent`.
struct Slices {
  int64_t outer = 1, extent = 1, inner = 1;
};

Slices slices(const std::vector<int64_t>& shape, size_t dim) {
  Slices result;
  for (size_t d = 0; d < dim; ++d) result.outer *= shape[d];
  result.extent = shape[dim];
  for (size_t d = dim + 1; d < shape.size(); ++d) result.inner *= shape[d];
  return result;
}

// Bits: zeros of both signs differ, and a NaN is itself.
template <class T>
bool are_alike(const std::vector<T>& elements, const Slices& s) {
  const size_t bytes = static_cast<size_t>(s.inner) * sizeof(T);
  for (int64_t group = 0; group < s.outer; ++group) {
    const T* first = elements.data() + group * s.extent * s.inner;
    for (int64_t i = 1; i < s.extent; ++i)
      if (std::memcmp(first, first + i * s.inner, bytes) != 0) return false;
  }
  return true;
}

template <class T>
void keep_first(std::vector<T>& elements, const Slices& s) {
  std::vector<T> kept;
  kept.reserve(static_cast<size_t>(s.outer * s.inner));
  for (int64_t group = 0; group < s.outer; ++group) {
    const auto first = elements.begin() + group * s.extent * s.inner;
    kept.insert(kept.end(), first, first + s.inner);
  }
  elements = std::move(kept);
}

}  // namespace

Tensor thinned(Tensor tensor) {
  if (tensor.num_elements() == 0) return tensor;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    const Slices s = slices(tensor.shape, dim);
    if (s.extent == 1) continue;
    const bool is_real = is_float(tensor.dtype);
    if (is_real ? !are_alike(tensor.floats, s) : !are_alike(tensor.integers, s)) continue;
    is_real ? keep_first(tensor.floats, s) : keep_first(tensor.integers, s);
    tensor.shape[dim] = 1;
  }
  return tensor;
}

Tensor widened(const Tensor& tensor, const std::vector<int64_t>& shape) {
  if (tensor.shape == shape) return tensor;
  Tensor result = Tensor::zeros(tensor.dtype, shape);
  walk(shape, {broadcast_strides(tensor.shape, shape)},
       [&](int64_t position, std::span<const int64_t> offset, auto) {
         copy_element(result, position, tensor, offset[0]);
       });
  return result;
}

}  // namespace lathe
