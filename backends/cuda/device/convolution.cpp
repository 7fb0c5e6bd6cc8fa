// Convolutions through cuDNN: the sum, and with it the bias, the residual and relu. f32 may use
// TF32, as PyTorch's convolutions do. cuDNN's engines for fused graphs take fewer shapes than those
// for a sum alone (few with groups): where none takes the whole, the sum is written first, and a
// second graph does the rest where it lies.
#include <memory>

#include "backends/cuda/device/cudnn_graph.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

using Attribute = CudnnAttribute;
using Kind = CudnnKind;
using Type = CudnnType;

class Convolution {
 public:
  Convolution(CudnnGraph& graph, const Program& program, const ConvolutionCall& call)
      : graph_(graph), call_(call), dtype_(dtype_of(program, call.y)) {}

  // The sum alone, what follows it, or both.
  enum class Part { whole, sum, rest };

  Status describe(Part part) {
    const CallEpilogue& epilogue = call_.epilogue;
    const bool has_relu = epilogue.activation == Activation::relu;
    const size_t bias_position = 2, residual_position = epilogue.bias ? 3 : 2;
    result_position_ = residual_position + (epilogue.residual ? 1 : 0);
    if (part != Part::sum)
      num_left_ = (epilogue.bias ? 1 : 0) + (epilogue.residual ? 1 : 0) + (has_relu ? 1 : 0);
    if (part == Part::rest) {
      now_ = graph_.memory(call_.y, dtype_, result_position_);
    } else {
      const CudnnDescriptor x = graph_.memory(call_.x, dtype_, 0);
      const CudnnDescriptor w = graph_.memory(call_.w, dtype_, 1);
      now_ = next_sum();
      graph_.add(Kind::convolution_forward, {{Attribute::forward_x, x},
                                             {Attribute::forward_w, w},
                                             {Attribute::forward_y, now_},
                                             {Attribute::forward_convolution, window()}});
    }
    if (part == Part::sum) return Ok{};
    if (part == Part::rest) --num_left_;
    if (epilogue.bias) {
      const int64_t channels = call_.y.shape[1].value();
      then(
          kCudnnAdd,
          graph_.memory(cudnn_dtype(dtype_), {1, channels, 1, 1}, {channels, 1, channels, channels},
                        {bias_position, epilogue.bias->offset.value() * dtype_bytes(dtype_)}));
    }
    if (epilogue.residual)
      then(kCudnnAdd, graph_.memory(*epilogue.residual, dtype_, residual_position));
    if (has_relu) then(kCudnnRelu, nullptr);
    return Ok{};
  }

 private:
  void then(int mode, CudnnDescriptor other) {
    const CudnnDescriptor after = next_sum();
    graph_.add_pointwise(mode, now_, other, nullptr, after);
    now_ = after;
  }

  // A value between operations; the last one is the result.
  CudnnDescriptor next_sum() {
    if (num_left_-- == 0) return graph_.memory(call_.y, dtype_, result_position_);
    return graph_.value(numbers(call_.y.shape), numbers(call_.y.strides));
  }

  CudnnDescriptor window() {
    CudnnDescriptors& parts = graph_.parts();
    CudnnDescriptor made = parts.create(Kind::convolution);
    parts.set_int(made, Attribute::convolution_precision, Type::dtype, kCudnnFloat);
    parts.set_int(made, Attribute::convolution_mode, Type::convolution_mode,
                  kCudnnCrossCorrelation);
    const std::vector<int64_t>& padding = call_.padding;
    const int64_t dims = static_cast<int64_t>(padding.size());
    parts.set(made, Attribute::convolution_dims, Type::int64, 1, &dims);
    parts.set_sizes(made, Attribute::convolution_pre_paddings, padding);
    parts.set_sizes(made, Attribute::convolution_post_paddings, padding);
    parts.set_sizes(made, Attribute::convolution_strides, call_.stride);
    parts.set_sizes(made, Attribute::convolution_dilations, call_.dilation);
    parts.finalize(made);
    return made;
  }

  CudnnGraph& graph_;
  const ConvolutionCall& call_;
  DType dtype_;
  CudnnDescriptor now_ = nullptr;  // the sum so far
  size_t result_position_ = 0;     // among the operands
  int num_left_ = 0;               // operations of the epilogue
};

bool has_epilogue(const ConvolutionCall& call) {
  return call.epilogue.bias || call.epilogue.residual ||
         call.epilogue.activation != Activation::none;
}

}  // namespace

Result<LibraryRun> plan_convolution(const Program& program, const ConvolutionCall& call,
                                    std::shared_ptr<Workspace> workspace) {
  const auto plan = [&](Convolution::Part part) {
    return plan_graph("convolve", workspace, [&](CudnnGraph& graph) {
      return Convolution(graph, program, call).describe(part);
    });
  };
  Result<LibraryRun> whole = plan(Convolution::Part::whole);
  if (whole.ok() || !has_epilogue(call)) return whole;
  LATHE_TRY(LibraryRun sum, plan(Convolution::Part::sum));
  LATHE_TRY(LibraryRun rest, plan(Convolution::Part::rest));
  return LibraryRun([sum, rest](CUstream stream, std::span<const CUdeviceptr> buffers) -> Status {
    LATHE_DO(sum(stream, buffers));
    return rest(stream, buffers);
  });
}

}  // namespace lathe::cuda
