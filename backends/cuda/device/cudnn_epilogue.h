// A sum and what follows it, as operations of cuDNN's graphs: the bias, the residual and the
// activation.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "backends/cuda/device/cudnn_graph.h"

namespace lathe::cuda {

// What a graph makes of a call: engines for a sum with all that follows take fewer shapes than
// those for the sum alone.
enum class CudnnPart { whole, sum, rest };

// Operands lie as in operands(call): two that are summed over, then those of the epilogue, then
// the result.
class CudnnSum {
 public:
  // `axis` of the result is what a bias moves along.
  CudnnSum(CudnnGraph& graph, const CallEpilogue& epilogue, const CallTensor& result, size_t axis,
           DType dtype)
      : graph_(graph), epilogue_(epilogue), result_(result), axis_(axis), dtype_(dtype) {}

  // `add_sum` adds the operation that writes the descriptor it is given.
  void describe(CudnnPart part, const std::function<void(CudnnDescriptor sum)>& add_sum);

 private:
  void then(const CudnnFunction& function, CudnnDescriptor other);
  CudnnDescriptor next_sum();
  CudnnDescriptor bias(size_t position);

  CudnnGraph& graph_;
  const CallEpilogue& epilogue_;
  const CallTensor& result_;
  size_t axis_;
  DType dtype_;
  CudnnDescriptor now_ = nullptr;  // the sum so far
  size_t result_position_ = 0;
  int num_left_ = 0;  // operations of the epilogue
};

// One graph, or two where cuDNN has no engine for the whole.
Result<LibraryRun> plan_sum(
    const std::string& what, const CallEpilogue& epilogue,
    const std::shared_ptr<Workspace>& workspace,
    const std::function<Status(CudnnGraph& graph, CudnnPart part)>& describe);

}  // namespace lathe::cuda
