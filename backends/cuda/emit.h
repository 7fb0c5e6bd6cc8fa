// CUDA C++ from loop IR: one kernel becomes one __global__ function
//
//   extern "C" __global__ void symbol(T* buffer, ..., int n0, ...)
//
// with one pointer for each global buffer, then one number for each of the kernel's dims, in order:
// an int where its range allows, otherwise an i64. Iterations of the parallel loop are spread
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
#include <span>
#include <string>

#include "ir/loop/node.h"
#include "ir/support/result.h"
#include "ir/target/target.h"

namespace lathe::cuda {

// How a kernel is launched: the grid has one dimension, a block is threads x rows.
struct LaunchShape {
  int64_t lo = 0;  // of the parallel loop
  int64_t step = 1;
  int hi_dim = -1;         // the dim, counted as in loop::dims, that it ends at; -1: none
  int64_t tasks = 0;       // its iterations; where it ends at a dim, the most that there may be
  int lanes = 1;           // of the kernel's vectors
  int lanes_a_thread = 1;  // of a vector
  int threads = 1;         // of a group, a power of two
  int groups = 1;          // in a block
  int members = 1;         // iterations of the thread loop, each of `threads` threads
  int rows() const { return groups * members; }
  int64_t blocks() const { return blocks_of(tasks); }
  // Where the dims have these values.
  int64_t blocks_at(std::span<const int64_t> sizes) const {
    return hi_dim < 0 ? blocks() : blocks_of(tasks_before(sizes[static_cast<size_t>(hi_dim)]));
  }
  int64_t blocks_of(int64_t count) const { return count / groups + (count % groups != 0); }
  int64_t tasks_before(int64_t hi) const {
    return hi <= lo ? 0 : (hi - lo) / step + ((hi - lo) % step != 0);
  }
};
Result<LaunchShape> launch_shape(const loop::Kernel& kernel, const Target& target);

// Sizes whose indices are ints, with room for what steps and blocks go beyond them.
inline constexpr int64_t kMostSmallSize = INT32_MAX - (1 << 20);

struct EmitOptions {
  // No two buffers of a launch overlap unless neither is written.
  bool is_noalias = true;
  // No dim is greater than kMostSmallSize, whatever its range says: who launches the kernel knows.
  bool has_small_sizes = true;
};
// Whether a range of the kernel's dims does not say that by itself.
bool has_large_sizes(const loop::Kernel& kernel);

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
