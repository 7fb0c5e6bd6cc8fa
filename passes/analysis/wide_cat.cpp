// Balanced trees of joins: n tensors in k levels, the k-th root of n at a time.
#include "passes/analysis/wide_cat.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lathe {
namespace {

constexpr size_t kMostJoined = 64;

// The least width that needs no more levels than kMostJoined would.
size_t width_of(size_t num_parts) {
  size_t levels = 1;
  for (size_t held = kMostJoined; held < num_parts; held *= kMostJoined) ++levels;
  const double root = std::pow(static_cast<double>(num_parts), 1.0 / static_cast<double>(levels));
  return std::clamp<size_t>(static_cast<size_t>(std::ceil(root)), 2, kMostJoined);
}

}  // namespace

bool is_wide_cat(const Node& node) {
  return node.op->traits.op_class == OpClass::view && node.op->traits.view == ViewKind::join &&
         node.operands.size() > kMostJoined;
}

Value narrow_cat(Builder& builder, const Node& cat) {
  const TensorType& type = cat.types[0];
  std::vector<Value> parts;
  for (Value part : cat.operands) {
    // PyTorch lets an empty [0] join anything; alone among themselves they have another rank.
    if (part.type().shape.size() != type.shape.size()) continue;
    // All at once: what two of them promote to may not hold what the whole does.
    const bool is_other = part.type().dtype != type.dtype;
    parts.push_back(is_other ? builder.call("cast", {part}, {{"dtype", type.dtype}}) : part);
  }
  const size_t width = width_of(parts.size());
  while (parts.size() > 1) {
    std::vector<Value> joined;
    for (size_t begin = 0; begin < parts.size(); begin += width) {
      const size_t end = std::min(begin + width, parts.size());
      std::vector<Value> group(parts.begin() + static_cast<ptrdiff_t>(begin),
                               parts.begin() + static_cast<ptrdiff_t>(end));
      joined.push_back(group.size() == 1
                           ? group[0]
                           : builder.call("cat", std::move(group), {{"dim", cat.int_attr("dim")}}));
    }
    parts = std::move(joined);
  }
  return parts[0];
}

}  // namespace lathe
