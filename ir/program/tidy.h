// Taking out of a program what its results do not depend on, and what it makes twice.
#pragma once
#include "ir/program/program.h"

namespace lathe {

// Launches whose results nobody reads, then the kernels and buffers that no launch uses. Values are
// made on demand while expressions are built, and what an expression asked for may simplify away:
// a slice that takes one piece of a cat reads no other piece. Inputs and outputs stay.
void drop_unread(Program& program);

// Launches of init that make the same from the same: the first one stays, and who read the others
// reads what it makes. A weight that many products read is packed once.
void share_constants(Program& program);

}  // namespace lathe
