// The part of cuDNN's graph API that Lathe calls, with prototypes and numbers as in cudnn_graph.h
// of cuDNN 9.
#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/cuda/device/driver_api.h"

namespace lathe::cuda {

using CudnnHandle = struct CudnnContext*;
using CudnnDescriptor = void*;

enum class CudnnKind : int {
  pointwise = 0,
  convolution = 1,
  engine = 2,
  engine_config = 3,
  heuristic = 4,
  plan = 5,
  convolution_forward = 10,
  convolution_backward_data = 12,
  pointwise_operation = 13,
  graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  matmul_operation = 19,
  reduction = 21,
  reduction_operation = 22
};

enum class CudnnAttribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_nan = 2,
  pointwise_axis = 9,
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
  config_engine = 300,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  forward_alpha = 700,
  forward_beta = 701,
  forward_convolution = 702,
  forward_w = 703,
  forward_x = 704,
  forward_y = 705,
  backward_alpha = 706,
  backward_beta = 707,
  backward_convolution = 708,
  backward_w = 709,
  backward_dx = 710,
  backward_dy = 711,
  operation_pointwise = 750,
  operation_x = 751,
  operation_b = 752,
  operation_y = 753,
  operation_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_dtype = 901,
  tensor_dims = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_notes = 1303,
  matmul_precision = 1500,
  matmul_a = 1520,
  matmul_b = 1521,
  matmul_c = 1522,
  matmul_description = 1523,
  reduction_mode = 1600,
  reduction_precision = 1601,
  reduction_x = 1610,
  reduction_y = 1611,
  reduction_description = 1612
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
  note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_mode = 18
};

inline constexpr int kCudnnFloat = 0, kCudnnHalf = 2, kCudnnInt32 = 4, kCudnnBf16 = 9;
inline constexpr int kCudnnBoolean = 11;
inline constexpr int kCudnnCrossCorrelation = 1;
inline constexpr int kCudnnPropagateNan = 1;
inline constexpr int kCudnnAdd = 0, kCudnnMul = 1, kCudnnMin = 2, kCudnnDiv = 6, kCudnnSub = 9,
                     kCudnnExp = 13;
inline constexpr int kCudnnLog = 15, kCudnnGreaterEqual = 303, kCudnnIndex = 501;
inline constexpr int kCudnnSelect = 601;
inline constexpr int kCudnnRelu = 100, kCudnnTanh = 101, kCudnnSigmoid = 102, kCudnnGelu = 104;
inline constexpr int kCudnnSwish = 106, kCudnnGeluTanh = 107;
inline constexpr int kCudnnReduceAdd = 0, kCudnnReduceMax = 3;
inline constexpr int kCudnnTensorCores = 0, kCudnnNarrowerInputs = 1;
inline constexpr int kCudnnFallback = 2, kCudnnModeA = 3;

struct CudnnApi {
  size_t (*version)() = nullptr;  // 91900: 9.19.0; null: it does not say
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
