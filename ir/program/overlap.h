// Which buffers of a launch may be the same memory.
#pragma once
#include <vector>

#include "ir/program/program.h"

namespace lathe {

// By kernel: no launch gives it two buffers that may overlap, unless neither is written. Emitters
// may then keep values of one buffer across stores to another. True for kernels without launches.
std::vector<bool> noalias_kernels(const Program& program);

}  // namespace lathe
