// The part of NVIDIA's driver API that Lathe calls, with prototypes as in cuda.h of CUDA 12 and 13.
// The names are the ones exported: "_v2" where cuda.h renames.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lathe::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CudaContext*;
using CUmodule = struct CudaModule*;
using CUfunction = struct CudaFunction*;
using CUstream = struct CudaStream*;
using CUevent = struct CudaEvent*;
using CUgraph = struct CudaGraph*;
using CUgraphExec = struct CudaGraphExec*;

inline constexpr CUresult kCudaSuccess = 0;
inline constexpr CUresult kCudaOutOfMemory = 2;
inline constexpr int kAttributeMajor = 75;     // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
inline constexpr int kAttributeMinor = 76;     // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
inline constexpr int kPointerMemoryType = 2;   // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
inline constexpr unsigned kMemoryDevice = 2;   // CU_MEMORYTYPE_DEVICE
inline constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

struct DriverApi {
  CUresult (*init)(unsigned flags) = nullptr;
  CUresult (*driver_version)(int* version) = nullptr;
  CUresult (*device_count)(int* count) = nullptr;
  CUresult (*device)(CUdevice* device, int ordinal) = nullptr;
  CUresult (*device_name)(char* name, int size, CUdevice device) = nullptr;
  CUresult (*device_attribute)(int* value, int attribute, CUdevice device) = nullptr;
  CUresult (*retain_context)(CUcontext* context, CUdevice device) = nullptr;
  CUresult (*current_context)(CUcontext* context) = nullptr;
  CUresult (*context_device)(CUdevice* device) = nullptr;
  CUresult (*set_context)(CUcontext context) = nullptr;
  CUresult (*load_module)(CUmodule* module, const void* image) = nullptr;
  CUresult (*unload_module)(CUmodule module) = nullptr;
  CUresult (*function)(CUfunction* function, CUmodule module, const char* name) = nullptr;
  CUresult (*allocate)(CUdeviceptr* address, size_t num_bytes) = nullptr;
  CUresult (*free)(CUdeviceptr address) = nullptr;
  CUresult (*copy)(CUdeviceptr to, CUdeviceptr from, size_t num_bytes, CUstream stream) = nullptr;
  CUresult (*fill)(CUdeviceptr to, unsigned char byte, size_t num_bytes, CUstream stream) = nullptr;
  CUresult (*pointer_attributes)(unsigned count, const int* attributes, void** values,
                                 CUdeviceptr address) = nullptr;
  CUresult (*create_stream)(CUstream* stream, unsigned flags) = nullptr;
  CUresult (*destroy_stream)(CUstream stream) = nullptr;
  CUresult (*synchronize)(CUstream stream) = nullptr;
  CUresult (*launch)(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                     CUstream stream, void** params, void** extra) = nullptr;
  CUresult (*create_event)(CUevent* event, unsigned flags) = nullptr;
  CUresult (*destroy_event)(CUevent event) = nullptr;
  CUresult (*record_event)(CUevent event, CUstream stream) = nullptr;
  CUresult (*elapsed)(float* milliseconds, CUevent start, CUevent end) = nullptr;
  CUresult (*begin_capture)(CUstream stream, int mode) = nullptr;
  CUresult (*end_capture)(CUstream stream, CUgraph* graph) = nullptr;
  CUresult (*instantiate)(CUgraphExec* exec, CUgraph graph, unsigned long long flags) = nullptr;
  CUresult (*launch_graph)(CUgraphExec exec, CUstream stream) = nullptr;
  CUresult (*destroy_graph)(CUgraph graph) = nullptr;
  CUresult (*destroy_exec)(CUgraphExec exec) = nullptr;
  CUresult (*error_string)(CUresult result, const char** text) = nullptr;
};

}  // namespace lathe::cuda
