// What follows a sum: see cudnn_epilogue.h.
#include "backends/cuda/device/cudnn_epilogue.h"

#include <optional>
#include <utility>
#include <vector>

namespace lathe::cuda {
namespace {

// One after the other. A limit is an operation of its own: relu's own upper limit has engines a
// hundred times slower.
struct Step {
  int mode;
  std::optional<float> other = {};
};

std::vector<Step> steps_of(Activation activation) {
  switch (activation) {
    case Activation::none:
      return {};
    case Activation::relu:
      return {{kCudnnRelu}};
    case Activation::relu6:
      return {{kCudnnRelu}, {kCudnnMin, 6.0F}};
    case Activation::gelu:
      return {{kCudnnGelu}};
    case Activation::gelu_tanh:
      return {{kCudnnGeluTanh}};
    case Activation::silu:
      return {{kCudnnSwish}};
    case Activation::sigmoid:
      return {{kCudnnSigmoid}};
    case Activation::tanh:
      return {{kCudnnTanh}};
  }
  return {};
}

int count_operations(const CallEpilogue& epilogue) {
  return (epilogue.bias ? 1 : 0) + (epilogue.residual ? 1 : 0) +
         static_cast<int>(steps_of(epilogue.activation).size());
}

}  // namespace

void CudnnSum::describe(CudnnPart part, const std::function<void(CudnnDescriptor sum)>& add_sum) {
  const size_t bias_position = 2, residual_position = epilogue_.bias ? 3 : 2;
  result_position_ = residual_position + (epilogue_.residual ? 1 : 0);
  if (part != CudnnPart::sum) num_left_ = count_operations(epilogue_);
  if (part == CudnnPart::rest) {
    now_ = graph_.memory(result_, dtype_, result_position_);
    --num_left_;
  } else {
    now_ = next_sum();
    add_sum(now_);
  }
  if (part == CudnnPart::sum) return;
  if (epilogue_.bias) then({kCudnnAdd}, bias(bias_position));
  if (epilogue_.residual)
    then({kCudnnAdd}, graph_.memory(*epilogue_.residual, dtype_, residual_position));
  for (const Step& step : steps_of(epilogue_.activation))
    then({step.mode}, step.other ? graph_.constant(*step.other, result_.shape.size()) : nullptr);
}

CudnnDescriptor CudnnSum::bias(size_t position) {
  const int64_t extent = result_.shape[axis_].value();
  std::vector<int64_t> dims(result_.shape.size(), 1), strides(result_.shape.size(), extent);
  dims[axis_] = extent;
  strides[axis_] = 1;
  return graph_.memory(cudnn_dtype(dtype_), dims, strides,
                       {position, epilogue_.bias->offset.value() * dtype_bytes(dtype_)});
}

void CudnnSum::then(const CudnnFunction& function, CudnnDescriptor other) {
  const CudnnDescriptor after = next_sum();
  graph_.add_pointwise(function, now_, other, nullptr, after);
  now_ = after;
}

// A value between operations; the last one is the result.
CudnnDescriptor CudnnSum::next_sum() {
  if (num_left_-- == 0) return graph_.memory(result_, dtype_, result_position_);
  return graph_.value(numbers(result_.shape), numbers(result_.strides));
}

Result<LibraryRun> plan_sum(
    const std::string& what, const CallEpilogue& epilogue,
    const std::shared_ptr<Workspace>& workspace,
    const std::function<Status(CudnnGraph& graph, CudnnPart part)>& describe) {
  const auto plan = [&](CudnnPart part) {
    return plan_graph(what, workspace, [&](CudnnGraph& graph) { return describe(graph, part); });
  };
  Result<LibraryRun> whole = plan(CudnnPart::whole);
  if (whole.ok() || count_operations(epilogue) == 0) return whole;
  LATHE_TRY(LibraryRun sum, plan(CudnnPart::sum));
  LATHE_TRY(LibraryRun rest, plan(CudnnPart::rest));
  return LibraryRun([sum, rest](CUstream stream, std::span<const CUdeviceptr> buffers) -> Status {
    LATHE_DO(sum(stream, buffers));
    return rest(stream, buffers);
  });
}

}  // namespace lathe::cuda
