// Taking out of a program what its results do not depend on.
#pragma once
#include "ir/program/program.h"

namespace lathe {

// Launches whose results nobody reads, then the kernels and buffers that no launch uses. Values are
// made on demand while expressions are built, and what an expression asked for may simplify away:
// a slice that takes one piece of a cat reads no other piece. Inputs and outputs stay.
void drop_unread(Program& program);

}  // namespace lathe
