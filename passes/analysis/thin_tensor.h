// Tensors that repeat along dims, kept once: as NumPy broadcasts, an extent of one stands for any.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph/tensor.h"

namespace lathe {

// The tensor with an extent of one wherever all slices along a dim have the same bits.
Tensor thinned(Tensor tensor);

// The tensor broadcast to `shape`, which is of its rank and as wide or wider.
Tensor widened(const Tensor& tensor, const std::vector<int64_t>& shape);

}  // namespace lathe
