// Memory indices as every emitter wants them: what all lanes share apart from what each lane adds.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/loop/linear.h"
#include "ir/loop/node.h"

namespace lathe::loop {

// Lane l of the index is base + lanes[l] + sum of factor * (lane l of vector).
struct LaneIndex {
  Linear base;                                    // the same for every lane
  std::vector<int64_t> lanes;                     // constant; empty for a scalar index
  std::vector<std::pair<Expr, int64_t>> vectors;  // what is neither affine in the lane nor uniform
};
LaneIndex split_lanes(Expr index);
// Adds factor * index; `into.lanes` has the lanes of every vector that is added to it.
void split_lanes(Expr index, int64_t factor, LaneIndex& into);

// The distance of neighbouring lanes when it is one constant and lane 0 adds nothing.
std::optional<int64_t> lane_stride(const std::vector<int64_t>& lanes);

}  // namespace lathe::loop
