// Loops for groups of threads where results lie along one variable and what they read along
// another, as where channels that lie side by side come to lie apart.
//
// Lanes lie where the results do. A long row of them reads one element of each line of memory, and
// the next row the next one, when the line has long gone from the nearest cache. So rows are cut
// short and followed by their neighbours along what is read: groups that share a block, and its
// cache, read lines as a whole.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/loop/node.h"
#include "ir/templates/collapse.h"

namespace lathe {

// Rewrites the nest's loops where that is so, and numbers say how long they are. `own`: lanes of a
// thread.
void cut_turned_rows(loop::Kernel& kernel, LoopVars& loops, std::vector<loop::Expr>& values,
                     std::vector<loop::Expr>& indices, int64_t own);

}  // namespace lathe
