// split_compare: see index.h.
#include "backends/placement/index.h"

#include "ir/loop/scalar.h"

namespace lathe::placement {

std::optional<loop::LaneIndex> split_compare(loop::Expr e) {
  auto* node = std::get_if<loop::Binary>(&e->kind);
  if (!node || !loop::is_compare(node->op) || e->lanes == 1 || node->a->dtype != DType::i64)
    return std::nullopt;
  loop::LaneIndex parts;
  parts.lanes.assign(static_cast<size_t>(e->lanes), 0);
  loop::split_lanes(node->a, 1, parts);
  loop::split_lanes(node->b, -1, parts);
  if (!parts.vectors.empty()) return std::nullopt;
  auto [low, high] = std::minmax_element(parts.lanes.begin(), parts.lanes.end());
  if (*low < INT32_MIN / 2 || *high > INT32_MAX / 2) return std::nullopt;
  return parts;
}

}  // namespace lathe::placement
