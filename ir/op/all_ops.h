// The tables of ops: every row of every file in ir/ops and ir/composites, by existence.
#pragma once
#include <vector>

#include "ir/graph/op_def.h"

namespace lathe {

std::vector<OpDef> all_ops();          // defined by the generated table in //ir/ops
std::vector<Import> all_composites();  // likewise in //ir/composites
const Registry& builtin_registry();    // built on first use from both; link //ir/ops

}  // namespace lathe
