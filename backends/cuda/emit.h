// CUDA C++ from loop IR: one kernel becomes one __global__ function
//
//   extern "C" __global__ void symbol(T* buffer, ...)
//
// with one pointer for each global buffer, in order. Iterations of the parallel loop are spread
// over the grid; the threads of one iteration are its group, and a vector lies across them.
//
// - Lane l of a vector belongs to one thread. Where every contiguous access is aligned, a thread
//   has neighbouring lanes, which it reads and writes at once; otherwise lane l is thread
//   l % threads, so that neighbouring threads touch neighbouring elements.
// - Scalar code is computed by every thread of the group alike; the first one stores its results.
// - reduce_lanes goes through shuffles and, for groups wider than a warp, shared memory.
// - Groups of up to a warp share a block with others; a wider one has a block of its own.
// - The thread loop of a kernel becomes the rows of a block: what the loop IR calls a thread is as
//   many of CUDA's as share its vectors, a warp where it has matrix tiles. Its group is the block.
// - Matrix tiles are registers of a warp, filled by ldmatrix where lines in shared memory are
//   aligned; mma is mma.sync.
// - Scratch and stack buffers are shared memory; the group waits around accesses to what it both
//   reads and writes.
// - Prefetches and non-temporal hints are dropped. Indices are 32 bits wide where ranges allow.
// - Arithmetic is not contracted (NVRTC gets --fmad=false): only `fma` fuses. Functions are CUDA's
//   own in their accurate form.
#pragma once
#include <cstdint>
#include <string>

#include "ir/loop/node.h"
#include "ir/support/result.h"
#include "ir/target/target.h"

namespace lathe::cuda {

// How a kernel is launched: the grid has one dimension, a block is threads x rows.
struct LaunchShape {
  int64_t lo = 0;  // of the parallel loop
  int64_t step = 1;
  int64_t tasks = 0;       // its iterations
  int lanes = 1;           // of the kernel's vectors
  int lanes_a_thread = 1;  // of a vector
  int threads = 1;         // of a group, a power of two
  int groups = 1;          // in a block
  int members = 1;         // iterations of the thread loop, each of `threads` threads
  int rows() const { return groups * members; }
  int64_t blocks() const { return (tasks + groups - 1) / groups; }
};
Result<LaunchShape> launch_shape(const loop::Kernel& kernel, const Target& target);

struct EmitOptions {
  // No two buffers of a launch overlap unless neither is written.
  bool is_noalias = true;
};

// The function's text; kPrelude must stand before it, and kTilePrelude where the kernel has matrix
// tiles. Errors are internal but for kernels that a
// GPU cannot run: too much scratch memory, too many iterations.
Result<std::string> emit_kernel(const loop::Kernel& kernel, const std::string& symbol,
                                const Target& target, const EmitOptions& options);

// What every kernel may use: element types, vectors in memory, reductions over a group.
extern const char* const kPrelude;
// What those with matrix tiles may use beside it.
extern const char* const kTilePrelude;

}  // namespace lathe::cuda
