// Volumes as images where a convolution does not move along a dim: libraries are slower at volumes.
#pragma once
#include "ir/program/program.h"

namespace lathe {

// A call whose windows have one element along a dim of space, one after the other, is the same of
// images that have that dim beside the batch's, or beside another such dim; operands that do not
// lie so leave it as it is. Volumes only.
void fold_still_dims(ConvolutionCall& call);

}  // namespace lathe
