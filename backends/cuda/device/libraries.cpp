// Which library runs which routine.
#include "backends/cuda/device/libraries.h"

namespace lathe::cuda {

Result<LibraryRun> plan_library(const Program& program, const LibraryCall& call,
                                std::shared_ptr<Workspace> workspace) {
  struct Planner {
    const Program& program;
    std::shared_ptr<Workspace> workspace;
    Result<LibraryRun> operator()(const MatmulCall& call) const {
      return plan_matmul(program, call, workspace);
    }
    Result<LibraryRun> operator()(const ConvolutionCall& call) const {
      return plan_convolution(program, call, workspace);
    }
    Result<LibraryRun> operator()(const AttentionCall& call) const {
      return plan_attention(program, call, workspace);
    }
  };
  return std::visit(Planner{program, std::move(workspace)}, call);
}

bool is_cudnn(const LibraryCall& call) { return !std::holds_alternative<MatmulCall>(call); }

DType dtype_of(const Program& program, const CallTensor& tensor) {
  return program.buffers[static_cast<size_t>(tensor.buffer)].type.dtype;
}

}  // namespace lathe::cuda
