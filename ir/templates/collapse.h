// Merges adjacent loops that every memory access walks evenly, and drops loops of one iteration.
#pragma once
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe {

// Loops, outermost first, over expressions: `values` may use the variables anywhere, `indices` are
// memory indices. All are rewritten; kernel.vars gets the new ranges.
struct LoopVars {
  std::vector<loop::Var> vars;
  std::vector<Dim> extents;
};
void collapse(loop::Kernel& kernel, LoopVars& loops, std::vector<loop::Expr>& values,
              std::vector<loop::Expr>& indices);

// The same for a reduction whose extents are sizes; others are left alone.
void collapse(loop::Kernel& kernel, loop::Reduce& reduce);

}  // namespace lathe
