// What of a region decides which kinds can make it, and at what price.
#pragma once
#include <string>

#include "passes/lowering/lowering.h"

namespace lathe {

// Equal for regions that are lowered alike: their ops, attributes and types, through the views and
// constants that a kernel reads through, with which operands are one value and which are constant.
// No names and no places.
std::string region_signature(const Lowering& lowering, const Node& region, Phase phase);

}  // namespace lathe
