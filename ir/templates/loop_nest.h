// The generic schedule: one tensor, given as the scalar expression of its element, becomes a
// kernel.
//
// What it decides, in order: adjacent loops that every access walks evenly become one; the
// innermost loop is vectorised when its accesses are contiguous, otherwise the innermost reduction
// is (where threads share vectors, whichever reads less for each lane); reductions that do not move
// with the innermost loop are computed once, before it (softmax, normalisations); the loops around
// become the parallel loop, split further when they are too few.
#pragma once
#include <string>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"

namespace lathe {

// An element of one buffer: out[index] = value, for every combination of vars in [0, extent).
struct LoopNest {
  loop::Kernel kernel;          // has the pool, the buffers and the vars; the body is made here
  std::vector<loop::Var> vars;  // outermost first, in the physical order of the output
  std::vector<int64_t> extents;
  loop::BufferRef out;
  loop::Expr index;  // over vars
  loop::Expr value;  // over vars; the output's dtype
};

loop::Kernel schedule(LoopNest nest, const Target& target);

// Elements computed between reads of memory, for judging how much work an iteration is; at most
// 2^31.
int64_t count_operations(loop::Expr value);

}  // namespace lathe
