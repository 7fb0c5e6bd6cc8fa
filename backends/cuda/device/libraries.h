// NVIDIA's libraries for contractions: what a library launch becomes.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/device/driver.h"
#include "ir/program/program.h"

namespace lathe::cuda {

// Puts a library's work for one launch into the stream; buffers in the order of operands(call).
using LibraryRun = std::function<Status(CUstream stream, std::span<const CUdeviceptr> buffers)>;

// Memory that the library calls of one program use one after the other. Reserved while they are
// planned, by any thread; allocated before one that needs more runs: recordings keep its address.
class Workspace {
 public:
  // `is_recorded`: calls are, so that all addresses they were made with must stay.
  explicit Workspace(bool is_recorded) : is_recorded_(is_recorded) {}
  void reserve(size_t num_bytes) {
    // Recordings are dropped when it grows: programs over sizes shall not make it grow by little.
    constexpr size_t kStep = 8 << 20;
    std::lock_guard lock(mutex_);
    needed_ = std::max(needed_, (num_bytes + kStep - 1) / kStep * kStep);
  }
  bool is_enough() const { return needed_ <= memory_.num_bytes(); }
  // Nothing may be using what there was.
  Status allocate(const Device& device) {
    memory_ = DeviceMemory();
    LATHE_TRY(memory_, DeviceMemory::allocate(device, needed_, "the libraries' workspace"));
    return Ok{};
  }
  bool is_recorded() const { return is_recorded_; }
  CUdeviceptr address() const { return memory_.address(); }
  size_t num_bytes() const { return memory_.num_bytes(); }

 private:
  std::mutex mutex_;
  const bool is_recorded_;
  size_t needed_ = 0;
  DeviceMemory memory_;
};

// Plans are made here, of a call of numbers: heuristics are asked and memory is reserved.
Result<LibraryRun> plan_library(const Program& program, const LibraryCall& call,
                                std::shared_ptr<Workspace> workspace);

bool is_cudnn(const LibraryCall& call);  // otherwise cuBLASLt's

// One routine each.
Result<LibraryRun> plan_matmul(const Program& program, const MatmulCall& call,
                               std::shared_ptr<Workspace> workspace);
Result<LibraryRun> plan_convolution(const Program& program, const ConvolutionCall& call,
                                    std::shared_ptr<Workspace> workspace);
Result<LibraryRun> plan_attention(const Program& program, const AttentionCall& call,
                                  std::shared_ptr<Workspace> workspace);

// The dtype of the operand's buffer.
DType dtype_of(const Program& program, const CallTensor& tensor);

}  // namespace lathe::cuda
