// Cycles that one core needs for a kernel when everything it reads is in its first cache.
//
// A core is taken to issue two vector operations, four scalar ones, two loads and a store a
// cycle. Each loop costs the most of what its units need, of its longest chain of dependent sums,
// and of what its iterations wait for: the operations of an iteration that depend on each other
// take their latencies one after the other, and only as many iterations overlap as the target's
// window holds. An iteration of n operations with a chain of l cycles so takes n * l / window,
// which grows with the square of what is computed one after the other: two functions of each
// other's results take four times what one does, and less in two loops. A value that does not
// move with a loop is computed before it, once, as the emitters do.
#pragma once
#include "ir/loop/node.h"
#include "ir/target/target.h"

namespace lathe {

double count_cycles(const loop::Kernel& kernel, const Target& target);

}  // namespace lathe
