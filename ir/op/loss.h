// What losses share.
#pragma once
#include "ir/op/composite.h"

namespace lathe {

// By the call's `reduction`, as PyTorch numbers them: all losses, their mean, or their sum.
Term reduced_loss(const Aten& aten, Term loss);

}  // namespace lathe
