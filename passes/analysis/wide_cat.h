// A kernel that joins tensors chooses among all of them for every element, and holds code for each.
#pragma once
#include "ir/graph/builder.h"
#include "ir/graph/node.h"

namespace lathe {

// A `cat` of more tensors than one kernel should choose among.
bool is_wide_cat(const Node& node);

// The same of a wide one as a tree of narrow ones, all of about the same width, whose kernels are
// equal where their shapes are. Operands must have types.
Value narrow_cat(Builder& builder, const Node& cat);

}  // namespace lathe
