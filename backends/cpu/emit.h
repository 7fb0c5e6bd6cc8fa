// LLVM IR from loop IR: one kernel becomes one function
//
//   void symbol(void** buffers, int64_t lo, int64_t hi, void* scratch)
//
// that runs the iterations lo <= var < hi of the kernel's parallel loop. `buffers` holds one
// pointer per global buffer, in order, and behind them, for a kernel with dims, one to their values
// (int64_t each); `scratch` is the caller's alone. No IR passes run on the
// result: what matters is emitted in its final form (unrolled, register arrays as SSA values,
// invariants hoisted, addresses shared).
//
// What a kernel must look like (beyond loop::verify with is_scheduled):
// - The parallel loop's lo and hi are numbers or dims, its range is not empty, and lo, hi of each
//   call are values that its variable takes (hi may be the end). Sizes have been lifted to dims.
// - Bounds of unroll loops are constant once outer unroll loops are expanded; register indices are
//   too. A kernel expands to at most kMaxStatements statements.
// - Transcendental functions and integer pow are expanded (loop::expand_math); no reduce, and no
//   reduce_lanes with argmax or argmin. Lanes under reduce_lanes are a power of two. Those of a
//   pair_dot are 4, 8 or 16, and the instruction set has it.
// - Buffers start at 64-byte boundaries. Loads and stores state their true element dtype.
// What it may rely on:
// - Expressions that do not move with a loop are computed outside of it; loads too, when the loop
//   surely runs and does not write the buffer. Vectors leave innermost loops only, so that nothing
//   stays in a register across the inner loops of its neighbours.
// - Equal expressions are computed once per block; loads until a store to their buffer.
// - min and max against a constant that is not NaN are one instruction; the sign of a zero picked
//   from zeros of both signs is not defined. Casts of floats outside the integer's range give any
//   value.
// - Scratch and stack buffers cost nothing to declare; both live in `scratch`.
// - f16 and bf16 values are computed in f32 and rounded after each operation.
#pragma once
#include <cstdint>
#include <string>

#include "backends/cpu/cpu_features.h"
#include "backends/placement/frame.h"
#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace llvm {
class Module;
}

namespace lathe::cpu {

using placement::KernelFrame;

struct EmitOptions {
  Isa isa = Isa::avx2;
  // No two buffers of a launch overlap unless neither is written.
  bool is_noalias = true;
};

// Adds the function to the module. Errors are internal but for forms that the list above excludes.
Status emit_kernel(llvm::Module& module, const loop::Kernel& kernel, const std::string& symbol,
                   const EmitOptions& options);

}  // namespace lathe::cpu
