// The part of cuBLASLt that Lathe calls, with prototypes and numbers as in cublasLt.h of CUDA 12
// and 13.
#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/cuda/device/driver_api.h"

namespace lathe::cuda {

using CublasHandle = struct CublasLtContext*;
using MatmulDesc = struct CublasLtMatmulDesc*;
using MatrixLayout = struct CublasLtMatrixLayout*;
using MatmulPreference = struct CublasLtMatmulPreference*;

struct MatmulAlgorithm {
  uint64_t data[8];
};
struct MatmulHeuristic {
  MatmulAlgorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

enum CublasDtype : int { kReal32F = 0, kReal64F = 1, kReal16F = 2, kReal16Bf = 14 };
enum CublasCompute : int { kCompute32F = 68, kCompute64F = 70 };
enum CublasOrder : int { kNotTransposed = 0, kTransposed = 1 };
enum CublasEpilogue : uint32_t { kPlain = 1, kRelu = 2, kBias = 4, kGelu = 32 };
enum DescAttribute : int { kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBias = 8 };
enum LayoutAttribute : int { kLayoutBatch = 5, kLayoutBatchStride = 6 };
enum PreferenceAttribute : int {
  kPreferWorkspace = 1,
  kPreferAlignA = 5,
  kPreferAlignB = 6,
  kPreferAlignC = 7,
  kPreferAlignD = 8
};

struct CublasLtApi {
  int (*create)(CublasHandle*) = nullptr;
  int (*create_desc)(MatmulDesc*, int compute, int scale) = nullptr;
  int (*destroy_desc)(MatmulDesc) = nullptr;
  int (*set_desc)(MatmulDesc, int attribute, const void* value, size_t num_bytes) = nullptr;
  int (*create_layout)(MatrixLayout*, int dtype, uint64_t rows, uint64_t columns,
                       int64_t leading) = nullptr;
  int (*destroy_layout)(MatrixLayout) = nullptr;
  int (*set_layout)(MatrixLayout, int attribute, const void* value, size_t num_bytes) = nullptr;
  int (*create_preference)(MatmulPreference*) = nullptr;
  int (*destroy_preference)(MatmulPreference) = nullptr;
  int (*set_preference)(MatmulPreference, int attribute, const void* value,
                        size_t num_bytes) = nullptr;
  int (*heuristic)(CublasHandle, MatmulDesc, MatrixLayout a, MatrixLayout b, MatrixLayout c,
                   MatrixLayout d, MatmulPreference, int wanted, MatmulHeuristic*,
                   int* found) = nullptr;
  int (*matmul)(CublasHandle, MatmulDesc, const void* alpha, CUdeviceptr a, MatrixLayout,
                CUdeviceptr b, MatrixLayout, const void* beta, CUdeviceptr c, MatrixLayout,
                CUdeviceptr d, MatrixLayout, const MatmulAlgorithm*, CUdeviceptr workspace,
                size_t workspace_bytes, CUstream) = nullptr;
};

// cuBLAS itself, for batches whose matrices no one stride walks.
struct CublasApi {
  int (*create)(CublasHandle*) = nullptr;
  int (*set_stream)(CublasHandle, CUstream) = nullptr;
  int (*set_workspace)(CublasHandle, CUdeviceptr, size_t num_bytes) = nullptr;
  // The arrays lie on the device.
  int (*batched)(CublasHandle, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
                 CUdeviceptr a_array, int a_dtype, int a_leading, CUdeviceptr b_array, int b_dtype,
                 int b_leading, const void* beta, CUdeviceptr c_array, int c_dtype, int c_leading,
                 int count, int compute, int algorithm) = nullptr;
};
inline constexpr int kDefaultAlgorithm = -1;

}  // namespace lathe::cuda
