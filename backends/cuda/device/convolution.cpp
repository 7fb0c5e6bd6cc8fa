// Convolutions through cuDNN: the sum, and with it the bias, the residual and relu. f32 may use
// TF32, as PyTorch's convolutions do.
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
  Convolution(CudnnGraph& graph, const Program& program, const LibraryLaunch& launch)
      : graph_(graph),
        launch_(launch),
        dtype_(program.buffers[static_cast<size_t>(launch.buffers.back())].type.dtype) {}

  Status describe() {
    y_dims_ = launch_sizes(launch_, "y");
    LATHE_CHECK(y_dims_.size() == 4, "a convolution without sizes");
    const CudnnDescriptor x = operand("x", launch_sizes(launch_, "x"), 0);
    const CudnnDescriptor w = operand("w", launch_sizes(launch_, "w"), 1);
    size_t next = 2;
    const std::vector<int64_t> bias_place = launch_sizes(launch_, "bias");
    const size_t bias_position = bias_place.empty() ? 0 : next++;
    CudnnDescriptor now = sum_after(0);
    graph_.add(Kind::convolution_forward, {{Attribute::forward_x, x},
                                           {Attribute::forward_w, w},
                                           {Attribute::forward_y, now},
                                           {Attribute::forward_convolution, window()}});
    for (size_t i = 0; i < launch_.epilogue.size(); ++i) {
      const std::string& op = launch_.epilogue[i];
      const int64_t channels = y_dims_[1];
      CudnnDescriptor other = nullptr;
      if (op == "bias")
        other = graph_.memory(cudnn_dtype(dtype_), {1, channels, 1, 1},
                              {channels, 1, channels, channels},
                              {bias_position, bias_place.front() * dtype_bytes(dtype_)});
      if (op == "residual") other = operand("residual", y_dims_, next);
      CudnnDescriptor after = sum_after(i + 1);
      graph_.add_pointwise(op == "relu" ? kCudnnRelu : kCudnnAdd, now, other, nullptr, after);
      now = after;
    }
    return Ok{};
  }

 private:
  CudnnDescriptor operand(const std::string& name, const std::vector<int64_t>& dims,
                          size_t position) {
    return graph_.memory(launch_, name, dtype_, dims, position);
  }

  // The value after `done` operations of the epilogue; the last one is the result.
  CudnnDescriptor sum_after(size_t done) {
    if (done == launch_.epilogue.size()) return operand("y", y_dims_, launch_.buffers.size() - 1);
    std::vector<int64_t> strides = launch_sizes(launch_, "y_strides");
    if (!strides.empty()) strides.erase(strides.begin());
    return graph_.value(y_dims_, strides);
  }

  CudnnDescriptor window() {
    CudnnDescriptors& parts = graph_.parts();
    CudnnDescriptor made = parts.create(Kind::convolution);
    parts.set_int(made, Attribute::convolution_precision, Type::dtype, kCudnnFloat);
    parts.set_int(made, Attribute::convolution_mode, Type::convolution_mode,
                  kCudnnCrossCorrelation);
    const std::vector<int64_t> padding = launch_sizes(launch_, "padding");
    const int64_t dims = static_cast<int64_t>(padding.size());
    parts.set(made, Attribute::convolution_dims, Type::int64, 1, &dims);
    parts.set_sizes(made, Attribute::convolution_pre_paddings, padding);
    parts.set_sizes(made, Attribute::convolution_post_paddings, padding);
    parts.set_sizes(made, Attribute::convolution_strides, launch_sizes(launch_, "stride"));
    parts.set_sizes(made, Attribute::convolution_dilations, launch_sizes(launch_, "dilation"));
    parts.finalize(made);
    return made;
  }

  CudnnGraph& graph_;
  const LibraryLaunch& launch_;
  DType dtype_;
  std::vector<int64_t> y_dims_;
};

}  // namespace

Result<LibraryRun> plan_convolution(const Program& program, const LibraryLaunch& launch,
                                    std::shared_ptr<Workspace> workspace) {
  return plan_graph("convolve", std::move(workspace), [&](CudnnGraph& graph) {
    return Convolution(graph, program, launch).describe();
  });
}

}  // namespace lathe::cuda
