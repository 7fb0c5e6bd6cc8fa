// The part of cuDNN's graph API that Lathe calls, with prototypes and numbers as in cudnn_graph.h
// of cuDNN 9.
#pragma once
#include <cstdint>

#include "backends/cuda/device/driver_api.h"

namespace lathe::cuda {

using CudnnHandle = struct CudnnContext*;
using CudnnDescriptor = void*;

enum class CudnnKind : int {
  pointwise = 0,
  convolution = 1,
  engine_config = 3,
  heuristic = 4,
  plan = 5,
  convolution_forward = 10,
  pointwise_operation = 13,
  graph = 15,
  variant_pack = 16,
  tensor = 17
};

enum class CudnnAttribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_nan = 2,
  convolution_precision = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_dims = 106,
  heuristic_mode = 200,
  heuristic_graph = 201,
  heuristic_results = 202,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  forward_alpha = 700,
  forward_beta = 701,
  forward_convolution = 702,
  forward_w = 703,
  forward_x = 704,
  forward_y = 705,
  operation_pointwise = 750,
  operation_x = 751,
  operation_b = 752,
  operation_y = 753,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_dtype = 901,
  tensor_dims = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003
};

enum class CudnnType : int {
  handle = 0,
  dtype = 1,
  boolean = 2,
  int64 = 3,
  f32 = 4,
  pointer = 6,
  convolution_mode = 7,
  heuristic_mode = 8,
  nan = 10,
  pointwise_mode = 14,
  descriptor = 15
};

inline constexpr int kCudnnFloat = 0, kCudnnHalf = 2, kCudnnBf16 = 9;
inline constexpr int kCudnnCrossCorrelation = 1;
inline constexpr int kCudnnPropagateNan = 1;
inline constexpr int kCudnnAdd = 0, kCudnnRelu = 100;
inline constexpr int kCudnnFallback = 2, kCudnnModeA = 3;

struct CudnnApi {
  int (*create)(CudnnHandle*) = nullptr;
  int (*set_stream)(CudnnHandle, CUstream) = nullptr;
  int (*create_descriptor)(CudnnKind, CudnnDescriptor*) = nullptr;
  int (*destroy_descriptor)(CudnnDescriptor) = nullptr;
  int (*set)(CudnnDescriptor, CudnnAttribute, CudnnType, int64_t count,
             const void* values) = nullptr;
  int (*get)(CudnnDescriptor, CudnnAttribute, CudnnType, int64_t wanted, int64_t* count,
             void* values) = nullptr;
  int (*finalize)(CudnnDescriptor) = nullptr;
  int (*execute)(CudnnHandle, CudnnDescriptor plan, CudnnDescriptor pack) = nullptr;
};

}  // namespace lathe::cuda
