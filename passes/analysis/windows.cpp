// Attributes of windows: see windows.h.
#include "passes/analysis/windows.h"

#include <algorithm>
#include <vector>

namespace lathe {

int64_t of_space(const Node& node, const char* name, size_t dim, int64_t fallback) {
  const std::vector<int64_t> values = node.ints_attr(name);
  return values.empty() ? fallback : values[std::min(dim, values.size() - 1)];
}

}  // namespace lathe
