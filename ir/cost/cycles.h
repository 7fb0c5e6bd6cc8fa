// Cycles that one core needs for a kernel when everything it reads is in its first cache.
//
// A core is taken to issue two vector operations, four scalar ones, two loads and a store a
// cycle, and a fused multiply-add to take four cycles before the next may read it. Each loop costs
// the most of what its units need and of its longest chain of dependent sums; a value that does
// not move with a loop is computed before it, once, as the emitters do.
#pragma once
#include "ir/loop/node.h"
#include "ir/target/target.h"

namespace lathe {

double count_cycles(const loop::Kernel& kernel, const Target& target);

}  // namespace lathe
