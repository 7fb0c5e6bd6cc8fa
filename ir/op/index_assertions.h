// What index operators ask of positions that come from data, as PyTorch does: that they are inside.
// Kernels stay inside whatever the data says (position.h); the assertion says that they had to.
#pragma once
#include "ir/op/import_call.h"

namespace lathe {

// Appends an assert_index for each tensor of positions of the call. Calls that are wrong in another
// way are left to who builds them.
Status assert_indices(Builder& builder, const ImportCall& call);

}  // namespace lathe
