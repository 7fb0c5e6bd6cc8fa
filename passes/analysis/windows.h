// What attributes say of the windows of convolutions and pools.
#pragma once
#include <cstdint>

#include "ir/graph/node.h"

namespace lathe {

// The number that the list `name` has for a dim of space: its last stands for those behind it. An
// absent list has `fallback`s.
int64_t of_space(const Node& node, const char* name, size_t dim, int64_t fallback);

}  // namespace lathe
