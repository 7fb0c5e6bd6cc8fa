// The text before kernels with matrix tiles: those of a warp, as mma.sync holds them.
#include "backends/cuda/emit.h"

namespace lathe::cuda {

const char* const kTilePrelude = R"cuda(
// Products of 16 x 16 by 16 x N. Thread t of a warp has pairs of neighbours along k, or along n in
// a sum, of the rows (of a right tile: columns) t / 4 and every eighth behind it.
template <class T>
__device__ unsigned pair_of(T a, T b) { return unsigned(a.bits) | unsigned(b.bits) << 16; }
__device__ int tile_line() { return threadIdx.x / 4; }
__device__ int tile_pair() { return threadIdx.x % 4 * 2; }

// Four 8 x 8 matrices from shared memory: each thread says where a line of one begins, at a
// multiple of 16 bytes.
template <bool kTransposed>
__device__ void load_matrices(unsigned* v, const void* line) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(line));
  if (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
}
template <bool kTransposed>
__device__ void load_two_matrices(unsigned* v, const void* line) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(line));
  if (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(v[0]), "=r"(v[1]) : "r"(at) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(v[0]), "=r"(v[1]) : "r"(at) : "memory");
}

template <class T>
struct LeftTile {
  unsigned v[4];
  __device__ void fill(T x) { for (unsigned& pair : v) pair = pair_of(x, x); }
  // Element (r, c) is from[r * row + c * column].
  __device__ void load(const T* from, int row, int column) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const T* at = from + (tile_line() + i % 2 * 8) * row + (tile_pair() + i / 2 * 8) * column;
      v[i] = pair_of(at[0], at[column]);
    }
  }
  __device__ void load_rows(const T* from, int stride) {
    load_matrices<false>(v, from + threadIdx.x % 16 * stride + threadIdx.x / 16 * 8);
  }
  __device__ void load_columns(const T* from, int stride) {
    load_matrices<true>(v, from + (threadIdx.x % 8 + threadIdx.x / 16 * 8) * stride +
                               threadIdx.x / 8 % 2 * 8);
  }
};

template <class T, int N>
struct RightTile {
  unsigned v[N / 4];
  __device__ void fill(T x) { for (unsigned& pair : v) pair = pair_of(x, x); }
  __device__ void load(const T* from, int row, int column) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      const T* at = from + (tile_pair() + i % 2 * 8) * row + (tile_line() + i / 2 * 8) * column;
      v[i] = pair_of(at[0], at[row]);
    }
  }
  __device__ void load_rows(const T* from, int stride) {
    const T* line = from + threadIdx.x % 16 * stride;
    if (N == 16) load_matrices<true>(v, line + threadIdx.x / 16 * 8);
    else load_two_matrices<true>(v, line);
  }
  __device__ void load_columns(const T* from, int stride) {
    const T* line = from + threadIdx.x % 8 * stride + threadIdx.x / 8 % 2 * 8;
    if (N == 16) load_matrices<false>(v, line + threadIdx.x / 16 * 8 * stride);
    else load_two_matrices<false>(v, line);
  }
};

template <int N>
struct SumTile {
  float v[N / 2];
  __device__ void fill(float x) { for (float& element : v) element = x; }
  __device__ static int place(int i, int row, int column) {
    return (tile_line() + i / 2 % 2 * 8) * row + (tile_pair() + i % 2 + i / 4 * 8) * column;
  }
  __device__ void load(const float* from, int row, int column) {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) v[i] = from[place(i, row, column)];
  }
  __device__ void store(float* to, int row) const {
#pragma unroll
    for (int i = 0; i < N / 2; ++i) to[place(i, row, 1)] = v[i];
  }
};

__device__ void mma_8(float* sum, const unsigned* a, const unsigned* b, bf16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void mma_8(float* sum, const unsigned* a, const unsigned* b, f16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <class T, int N>
__device__ void mma(SumTile<N>& sum, const LeftTile<T>& a, const RightTile<T, N>& b) {
#pragma unroll
  for (int j = 0; j < N / 8; ++j) mma_8(sum.v + 4 * j, a.v, b.v + 2 * j, T());
}
)cuda";

}  // namespace lathe::cuda
