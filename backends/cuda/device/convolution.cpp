// Convolutions through cuDNN: the sum, and with it the bias, the residual and the activation.
#include <memory>

#include "backends/cuda/device/cudnn_epilogue.h"

namespace lathe::cuda {
namespace {

using Attribute = CudnnAttribute;
using Kind = CudnnKind;
using Type = CudnnType;

CudnnDescriptor describe_window(CudnnDescriptors& parts, const ConvolutionCall& call) {
  CudnnDescriptor made = parts.create(Kind::convolution);
  parts.set_int(made, Attribute::convolution_precision, Type::dtype, kCudnnFloat);
  parts.set_int(made, Attribute::convolution_mode, Type::convolution_mode, kCudnnCrossCorrelation);
  const std::vector<int64_t>& padding = call.padding;
  const int64_t dims = static_cast<int64_t>(padding.size());
  parts.set(made, Attribute::convolution_dims, Type::int64, 1, &dims);
  parts.set_sizes(made, Attribute::convolution_pre_paddings, padding);
  parts.set_sizes(made, Attribute::convolution_post_paddings, padding);
  parts.set_sizes(made, Attribute::convolution_strides, call.stride);
  parts.set_sizes(made, Attribute::convolution_dilations, call.dilation);
  parts.finalize(made);
  return made;
}

// A transposed convolution is the gradient of one by its image.
void add_sum(CudnnGraph& graph, const ConvolutionCall& call, DType dtype, CudnnDescriptor sum) {
  if (dtype == DType::f32 && !call.may_use_tf32) graph.keep_f32();
  const CudnnDescriptor x = graph.memory(call.x, dtype, 0), w = graph.memory(call.w, dtype, 1);
  const CudnnDescriptor window = describe_window(graph.parts(), call);
  if (call.is_transposed)
    graph.add(Kind::convolution_backward_data, {{Attribute::backward_dy, x},
                                                {Attribute::backward_w, w},
                                                {Attribute::backward_dx, sum},
                                                {Attribute::backward_convolution, window}});
  else
    graph.add(Kind::convolution_forward, {{Attribute::forward_x, x},
                                          {Attribute::forward_w, w},
                                          {Attribute::forward_y, sum},
                                          {Attribute::forward_convolution, window}});
}

}  // namespace

Result<LibraryRun> plan_convolution(const Program& program, const ConvolutionCall& call,
                                    std::shared_ptr<Workspace> workspace) {
  constexpr size_t kChannels = 1;  // the dim
  const DType dtype = dtype_of(program, call.y);
  return plan_sum(
      "convolve", call.epilogue, workspace, [&](CudnnGraph& graph, CudnnPart part) -> Status {
        CudnnSum(graph, call.epilogue, call.y, kChannels, dtype)
            .describe(part, [&](CudnnDescriptor sum) { add_sum(graph, call, dtype, sum); });
        return Ok{};
      });
}

}  // namespace lathe::cuda
