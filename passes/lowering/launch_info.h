// What tables say of a launch.
#pragma once
#include <string>

#include "ir/graph/node.h"
#include "ir/type/dim.h"

namespace lathe {

struct LaunchInfo {
  std::string label;   // "matmul_add_gelu", or what the launch does for one: "pack", "pad", "copy"
  const Node* origin;  // whose line of Python it is
  Dim flops = 0;       // multiplies and adds count one each
};
// Of a region.
LaunchInfo describe(const Node& node);

}  // namespace lathe
