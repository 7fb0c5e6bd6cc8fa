// The generic schedule: tensors of one shape, each given as the scalar expression of its element,
// become a kernel.
//
// What it decides, in order: adjacent loops that every access walks evenly become one; the
// innermost loop is vectorised when its accesses are contiguous, otherwise the innermost reduction
// is (where threads share vectors, whichever reads less for each lane); reductions that do not move
// with the innermost loop are computed once, before it (softmax, normalisations); the loops around
// become the parallel loop, split further when they are too few. Tensors share the loops, and what
// their expressions share is computed once.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"

namespace lathe {

// An element of each output: outs[i][index] = values[i], for every combination of vars in
// [0, extent).
struct LoopNest {
  loop::Kernel kernel;          // has the pool, the buffers and the vars; the body is made here
  std::vector<loop::Var> vars;  // outermost first, in the physical order of the outputs
  std::vector<Dim> extents;
  loop::Expr index;                           // over vars
  std::vector<loop::BufferRef> outs;          // different ones, at least one
  std::vector<loop::Expr> values;             // over vars; of the outputs' dtypes
  std::map<std::string, int64_t> hints = {};  // sizes that choices reckon with
  bool is_once = false;  // run once: where compiling is dear, short code is best
};

loop::Kernel schedule(LoopNest nest, const Target& target);

// The value of a size where its symbols have these; 1 when they have none.
int64_t size_at(const Dim& size, const std::map<std::string, int64_t>& hints);

// Elements computed between reads of memory, for judging how much work an iteration is; at most
// 2^31.
int64_t count_operations(std::span<const loop::Expr> values);

}  // namespace lathe
