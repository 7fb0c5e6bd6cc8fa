// Where a view's elements lie in what it is a view of.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/node.h"

namespace lathe {

// Elements between neighbours in each dim, as the views above the value have left them. Nothing
// when no strides can say it, when a size is a symbol, or behind very many views.
std::optional<std::vector<int64_t>> view_strides(Value value);

}  // namespace lathe
