// Moves groups of nodes into the bodies of `fused` nodes: how every fusion pass ends.
#pragma once
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/support/result.h"

namespace lathe {

// Nodes that become one, in graph order. What others read of them follows the last of them, and so
// does what those others are moved into.
struct FusionGroup {
  std::vector<Node*> members;
};

// Replaces every group by a fused node at the place of its last member, in one sweep. Groups must
// not share nodes. The new node takes the last member's name and a location derived from all
// members. Its first result is the last member's; further ones are the others that a node outside
// of the group, the caller or a mutation reads, in graph order.
Status outline(Module& module, Graph& graph, const Registry& ops, std::string_view pass,
               const std::vector<FusionGroup>& groups);

}  // namespace lathe
