// Loops that combine what they compute into accumulators.
//
// Sums of many floats are taken in blocks, each with accumulators of its own: one chain of n
// additions is off by up to n roundings (a million times 0.1 gives 100958 in f32), blocks of blocks
// by the sum of their lengths. How many there are may depend on sizes: then code for few and code
// for many stand beside each other.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe {

// So many additions into one accumulator are left as they are; of more, a block is so long.
inline constexpr int64_t kLongestChain = 256;
inline constexpr int64_t kSumBlock = 64;

// `count` registers of `lanes` lanes.
struct Accumulator {
  loop::ReduceOp op;
  DType dtype;
  int lanes = 1;
  int64_t count = 1;
  loop::RegArray regs;
};

// Declares it in `block`, at the identity of its op.
Accumulator start_accumulator(loop::Kernel& kernel, Accumulator shape, loop::Block& block);
// Register `i`, and the statement that combines `value` into it in the lanes of `mask` (null: all).
loop::Expr read(loop::Kernel& kernel, const Accumulator& accumulator, loop::Expr i);
loop::Stmt combine_into(loop::Kernel& kernel, const Accumulator& accumulator, loop::Expr i,
                        loop::Expr value, loop::Expr mask = {});

// for (var = lo; var < hi; var += step)
struct AccumulateLoop {
  loop::Var var;
  loop::Expr lo, hi;
  int64_t step = 1;
  int64_t most = INT64_MAX;  // no more iterations, whatever a size is
};

// Statements that combine into the accumulator they are given.
using AccumulateBody = std::function<loop::Block(const Accumulator&)>;

// `loops`, outermost first, around `body`, which combines `body_chain` times into each register.
loop::Block accumulate(loop::Kernel& kernel, const Accumulator& accumulator,
                       std::vector<AccumulateLoop> loops, const Dim& body_chain,
                       const AccumulateBody& body);

}  // namespace lathe
