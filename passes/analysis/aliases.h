// Which values share memory in PyTorch's eager run: what an in-place op writes, others see.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/node.h"

namespace lathe {

// Element strides of a value in eager, when its shape is static; nullopt: not known.
using Strides = std::optional<std::vector<int64_t>>;

Strides contiguous_strides(const TensorType& type);

// Whether result `index` of `node` shares memory with operand 0, whose strides are given, and with
// which strides of its own. A reshape of memory that no strides describe is a copy in eager; when
// the strides are not known it is taken for a view.
struct ViewOf {
  bool is_view = false;
  Strides strides;
};
ViewOf view_of(const Node& node, int index, const Strides& operand);

}  // namespace lathe
