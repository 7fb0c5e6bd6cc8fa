// A matrix product as a register-tile kernel, written by hand in loop IR: what templates produce,
// for tests and benchmarks of the emitters alone.
#pragma once
#include <cstdint>

#include "ir/loop/node.h"

namespace lathe {

struct GemmShape {
  int64_t m, n, k;
  int rows, vectors, lanes;  // of the tile; n is a multiple of vectors*lanes
  int unroll = 4;            // k steps per iteration; k is a multiple of it
};

// C[m, n] = max(A[m, k] @ B + bias, 0) with B packed as [n / width][k][width], width =
// vectors*lanes. Buffers: a, b, bias, c. Rows are split into balanced tiles of at most `rows`.
loop::Kernel make_gemm_kernel(const GemmShape& shape);

}  // namespace lathe
