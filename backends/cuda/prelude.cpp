// The text that stands before kernels: what CUDA C++ lacks without its headers.
#include "backends/cuda/emit.h"

namespace lathe::cuda {

const char* const kPrelude = R"cuda(using i64 = long long;
using i16 = short;
using i8 = signed char;
using u8 = unsigned char;

// Stored in 16 bits, computed in f32.
struct bf16 {
  unsigned short bits;
  bf16() = default;
  __device__ explicit bf16(float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ operator float() const { return __int_as_float(int(bits) << 16); }
};
struct f16 {
  unsigned short bits;
  f16() = default;
  __device__ explicit f16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ operator float() const {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
};

template <class To, class From>
__device__ To bits_of(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bitcasts keep the width");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
// For results that are then rounded to a half: quotients within 2 ULP, exponentials within 1e-5.
__device__ float near_quotient(float a, float b) {
  float q;
  asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
  return q;
}
__device__ float near_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
  return y;
}
// Divides many: its reciprocal is taken once, of what has a normal one.
struct Divisor {
  float scale, reciprocal;
  __device__ explicit Divisor(float b)
      : scale(fabsf(b) < 1e-30f ? 1e30f : fabsf(b) > 1e30f ? 1e-30f : 1.0f),
        reciprocal(1.0f / (b * scale)) {}
};
__device__ float near_quotient(float a, const Divisor& b) { return a * b.scale * b.reciprocal; }

// Neighbouring elements of a thread, moved in accesses of up to 16 bytes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T v[N];
  __device__ T& operator[](int i) { return v[i]; }
  __device__ const T& operator[](int i) const { return v[i]; }
};
template <int N, class T>
__device__ Pack<T, N> load(const T* from) { return *reinterpret_cast<const Pack<T, N>*>(from); }
template <int N, class T>
__device__ Pack<T, N> load_if(bool on, const T* from) {
  Pack<T, N> pack = {};
  if (on) pack = load<N>(from);
  return pack;
}
template <int N, class T>
__device__ void store(T* to, const Pack<T, N>& pack) { *reinterpret_cast<Pack<T, N>*>(to) = pack; }

// NaN when either side is.
template <class T>
__device__ T least(T a, T b) { return b < a ? b : a; }
template <class T>
__device__ T most(T a, T b) { return a < b ? b : a; }
template <>
__device__ float least(float a, float b) {
  float x;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
template <>
__device__ float most(float a, float b) {
  float x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
template <>
__device__ double least(double a, double b) { return a != a || a < b ? a : b; }
template <>
__device__ double most(double a, double b) { return a != a || a > b ? a : b; }

// Integers: quotients by zero are 0.
template <class T>
__device__ T absolute(T a) { return a < 0 ? T(-a) : a; }
template <class T>
__device__ T quotient(T a, T b) { return b == 0 ? T(0) : b == T(-1) ? T(0 - a) : T(a / b); }
template <class T>
__device__ T floor_div(T a, T b) {
  if (b == 0) return T(0);
  if (b == T(-1)) return T(0 - a);
  T q = a / b;
  return T(q - (a % b != 0 && (a < 0) != (b < 0)));
}
template <class T>
__device__ T floor_mod(T a, T b) {
  if (b == 0 || b == T(-1)) return T(0);
  T r = a % b;
  return T(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}
template <class T>
__device__ T int_pow(T a, T b) {
  if (b < 0) return a == 1 ? T(1) : a == T(-1) ? T(b % 2 == 0 ? 1 : -1) : T(0);
  T result = 1;
  for (; b != 0; b = T(b / 2), a = T(a * a))
    if (b % 2 != 0) result = T(result * a);
  return result;
}

// Reductions over the threads of a group; all get the result.
struct Sum { template <class T> static __device__ T of(T a, T b) { return a + b; } };
struct Prod { template <class T> static __device__ T of(T a, T b) { return a * b; } };
struct Max { template <class T> static __device__ T of(T a, T b) { return most(a, b); } };
struct Min { template <class T> static __device__ T of(T a, T b) { return least(a, b); } };
struct Any { template <class T> static __device__ T of(T a, T b) { return a || b; } };
struct All { template <class T> static __device__ T of(T a, T b) { return a && b; } };

// Combines x with what is there, in one step.
template <int kBytes> struct Word { using T = unsigned; };
template <> struct Word<8> { using T = unsigned long long; };
template <class Op, class T>
__device__ void combine_at(T* at, T x) {
  using Bits = typename Word<sizeof(T)>::T;
  Bits* word = reinterpret_cast<Bits*>(at);
  Bits seen = *word, before;
  do {
    before = seen;
    const Bits after = bits_of<Bits>(Op::of(bits_of<T>(before), x));
    if (after == before) return;
    seen = atomicCAS(word, before, after);
  } while (seen != before);
}
template <> __device__ void combine_at<Sum, float>(float* at, float x) { atomicAdd(at, x); }
template <> __device__ void combine_at<Sum, double>(double* at, double x) { atomicAdd(at, x); }
template <> __device__ void combine_at<Sum, int>(int* at, int x) { atomicAdd(at, x); }
template <> __device__ void combine_at<Sum, i64>(i64* at, i64 x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(x));
}
template <> __device__ void combine_at<Max, int>(int* at, int x) { atomicMax(at, x); }
template <> __device__ void combine_at<Max, i64>(i64* at, i64 x) { atomicMax(at, x); }
template <> __device__ void combine_at<Min, int>(int* at, int x) { atomicMin(at, x); }
template <> __device__ void combine_at<Min, i64>(i64* at, i64 x) { atomicMin(at, x); }

// The threads of the caller's group within its warp.
template <int kThreads>
__device__ unsigned group_mask() {
  if (kThreads >= 32) return 0xffffffffu;
  unsigned lane = (threadIdx.y * kThreads + threadIdx.x) % 32;
  return ((1u << (kThreads % 32)) - 1u) << (lane - threadIdx.x);
}
template <int kThreads>
__device__ void group_sync() {
  if (kThreads > 32) __syncthreads();
  else __syncwarp(group_mask<kThreads>());
}
template <class Op, int kThreads, class T>
__device__ T reduce_group(T x) {
#pragma unroll
  for (int step = (kThreads < 32 ? kThreads : 32) / 2; step > 0; step /= 2)
    x = Op::of(x, T(__shfl_xor_sync(group_mask<kThreads>(), x, step)));
  if (kThreads > 32) {
    __shared__ T parts[kThreads > 32 ? kThreads / 32 : 1];
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
#pragma unroll
    for (int i = 1; i < kThreads / 32; ++i) x = Op::of(x, parts[i]);
    __syncthreads();
  }
  return x;
}
)cuda";

}  // namespace lathe::cuda
