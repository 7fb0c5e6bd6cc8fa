// The table of ops: every row of every file in ir/ops, by existence.
#pragma once
#include <vector>

#include "ir/graph/op_def.h"

namespace lathe {

std::vector<OpDef> all_ops();        // defined by the generated table in //ir/ops
const Registry& builtin_registry();  // built on first use from all_ops(); link //ir/ops

}  // namespace lathe
