// Convolutions through cuDNN's graph API: the sum, and with it the bias, the residual and relu.
//
// The graph is described once; cuDNN's heuristics name engines, best first, and the first that can
// be made runs it. f32 may use TF32, as PyTorch's convolutions do.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "backends/cuda/device/cudnn_api.h"
#include "backends/cuda/device/libraries.h"
#include "backends/cuda/device/library.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

using Attribute = CudnnAttribute;
using Kind = CudnnKind;
using Type = CudnnType;

constexpr int64_t kAlignment = 16;

struct Cudnn {
  CudnnApi api;
  CudnnHandle handle = nullptr;
};

Status check(int status, const std::string& what) {
  if (status == 0) return Ok{};
  return Diag{code::kUnavailable, Loc::unknown(),
              fmt::format("cuDNN failed to {} (status {})", what, status)};
}

Status find_all(const Library& library, CudnnApi& api) {
  LATHE_DO(library.find(api.create, "cudnnCreate"));
  LATHE_DO(library.find(api.set_stream, "cudnnSetStream"));
  LATHE_DO(library.find(api.create_descriptor, "cudnnBackendCreateDescriptor"));
  LATHE_DO(library.find(api.destroy_descriptor, "cudnnBackendDestroyDescriptor"));
  LATHE_DO(library.find(api.set, "cudnnBackendSetAttribute"));
  LATHE_DO(library.find(api.get, "cudnnBackendGetAttribute"));
  LATHE_DO(library.find(api.finalize, "cudnnBackendFinalize"));
  return library.find(api.execute, "cudnnBackendExecute");
}

// Opened once for each process.
Result<const Cudnn*> open_cudnn() {
  static std::mutex mutex;
  static std::unique_ptr<Cudnn> opened;
  std::lock_guard lock(mutex);
  if (opened) return opened.get();
  LATHE_TRY(const Library* library, Library::open({"libcudnn.so.9"}, "cuDNN"));
  auto made = std::make_unique<Cudnn>();
  LATHE_DO(find_all(*library, made->api));
  LATHE_DO(check(made->api.create(&made->handle), "start"));
  opened = std::move(made);
  return opened.get();
}

// Descriptors of one plan, destroyed together. The first error stays.
class Descriptors {
 public:
  explicit Descriptors(const CudnnApi& api) : api_(api) {}
  ~Descriptors() {
    for (size_t i = made_.size(); i-- > 0;) api_.destroy_descriptor(made_[i]);
  }
  Descriptors(const Descriptors&) = delete;

  CudnnDescriptor create(Kind kind) {
    CudnnDescriptor descriptor = nullptr;
    note(api_.create_descriptor(kind, &descriptor));
    if (descriptor) made_.push_back(descriptor);
    return descriptor;
  }
  void set(CudnnDescriptor to, Attribute attribute, Type type, int64_t count, const void* values) {
    if (status_ == 0) note(api_.set(to, attribute, type, count, values));
  }
  void set_int(CudnnDescriptor to, Attribute attribute, Type type, int value) {
    set(to, attribute, type, 1, &value);
  }
  void set_sizes(CudnnDescriptor to, Attribute attribute, const std::vector<int64_t>& sizes) {
    set(to, attribute, Type::int64, static_cast<int64_t>(sizes.size()), sizes.data());
  }
  void set_descriptor(CudnnDescriptor to, Attribute attribute, CudnnDescriptor value) {
    set(to, attribute, Type::descriptor, 1, &value);
  }
  void finalize(CudnnDescriptor descriptor) {
    if (status_ == 0) note(api_.finalize(descriptor));
  }
  int status() const { return status_; }

 private:
  void note(int status) {
    if (status_ == 0) status_ = status;
  }
  const CudnnApi& api_;
  std::vector<CudnnDescriptor> made_;
  int status_ = 0;
};

class Convolution {
 public:
  explicit Convolution(const Cudnn& library) : library_(library), parts_(library.api) {}

  Status plan(const Program& program, const LibraryLaunch& launch, Workspace& workspace);
  Status run(CUstream stream, std::span<const CUdeviceptr> buffers, const Workspace& workspace);

 private:
  // Memory that the graph reads or writes.
  struct Port {
    size_t position;  // in the launch's buffers
    int64_t offset_bytes;
  };
  CudnnDescriptor tensor(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                         std::optional<Port> port);
  CudnnDescriptor operation(const LibraryLaunch& launch, CudnnDescriptor x, CudnnDescriptor w,
                            CudnnDescriptor y);
  CudnnDescriptor pointwise(int mode, CudnnDescriptor x, CudnnDescriptor b, CudnnDescriptor y);
  Status choose(CudnnDescriptor graph, int mode);

  const Cudnn& library_;
  Descriptors parts_;
  CudnnDescriptor plan_ = nullptr;
  DType dtype_ = DType::f32;
  std::vector<Port> ports_;  // by id
  int64_t next_virtual_ = 1000;
  int64_t workspace_bytes_ = 0;
};

int cudnn_dtype(DType dtype) {
  return dtype == DType::f16 ? kCudnnHalf : dtype == DType::bf16 ? kCudnnBf16 : kCudnnFloat;
}

CudnnDescriptor Convolution::tensor(const std::vector<int64_t>& dims,
                                    const std::vector<int64_t>& strides, std::optional<Port> port) {
  CudnnDescriptor made = parts_.create(Kind::tensor);
  const bool is_virtual = !port;
  // What stays between operations has the precision of the sums.
  parts_.set_int(made, Attribute::tensor_dtype, Type::dtype,
                 is_virtual ? kCudnnFloat : cudnn_dtype(dtype_));
  parts_.set_sizes(made, Attribute::tensor_dims, dims);
  parts_.set_sizes(made, Attribute::tensor_strides, strides);
  const int64_t id = is_virtual ? next_virtual_++ : static_cast<int64_t>(ports_.size());
  if (port) ports_.push_back(*port);
  parts_.set(made, Attribute::tensor_id, Type::int64, 1, &id);
  parts_.set(made, Attribute::tensor_alignment, Type::int64, 1, &kAlignment);
  parts_.set(made, Attribute::tensor_is_virtual, Type::boolean, 1, &is_virtual);
  parts_.finalize(made);
  return made;
}

CudnnDescriptor Convolution::operation(const LibraryLaunch& launch, CudnnDescriptor x,
                                       CudnnDescriptor w, CudnnDescriptor y) {
  CudnnDescriptor window = parts_.create(Kind::convolution);
  parts_.set_int(window, Attribute::convolution_precision, Type::dtype, kCudnnFloat);
  parts_.set_int(window, Attribute::convolution_mode, Type::convolution_mode,
                 kCudnnCrossCorrelation);
  const std::vector<int64_t> padding = launch_sizes(launch, "padding");
  const int64_t dims = static_cast<int64_t>(padding.size());
  parts_.set(window, Attribute::convolution_dims, Type::int64, 1, &dims);
  parts_.set_sizes(window, Attribute::convolution_pre_paddings, padding);
  parts_.set_sizes(window, Attribute::convolution_post_paddings, padding);
  parts_.set_sizes(window, Attribute::convolution_strides, launch_sizes(launch, "stride"));
  parts_.set_sizes(window, Attribute::convolution_dilations, launch_sizes(launch, "dilation"));
  parts_.finalize(window);
  CudnnDescriptor made = parts_.create(Kind::convolution_forward);
  const float one = 1, zero = 0;
  parts_.set_descriptor(made, Attribute::forward_x, x);
  parts_.set_descriptor(made, Attribute::forward_w, w);
  parts_.set_descriptor(made, Attribute::forward_y, y);
  parts_.set_descriptor(made, Attribute::forward_convolution, window);
  parts_.set(made, Attribute::forward_alpha, Type::f32, 1, &one);
  parts_.set(made, Attribute::forward_beta, Type::f32, 1, &zero);
  parts_.finalize(made);
  return made;
}

CudnnDescriptor Convolution::pointwise(int mode, CudnnDescriptor x, CudnnDescriptor b,
                                       CudnnDescriptor y) {
  CudnnDescriptor function = parts_.create(Kind::pointwise);
  parts_.set_int(function, Attribute::pointwise_mode, Type::pointwise_mode, mode);
  parts_.set_int(function, Attribute::pointwise_precision, Type::dtype, kCudnnFloat);
  if (mode == kCudnnRelu)
    parts_.set_int(function, Attribute::pointwise_nan, Type::nan, kCudnnPropagateNan);
  parts_.finalize(function);
  CudnnDescriptor made = parts_.create(Kind::pointwise_operation);
  parts_.set_descriptor(made, Attribute::operation_pointwise, function);
  parts_.set_descriptor(made, Attribute::operation_x, x);
  if (b) parts_.set_descriptor(made, Attribute::operation_b, b);
  parts_.set_descriptor(made, Attribute::operation_y, y);
  parts_.finalize(made);
  return made;
}

// The first engine that takes the graph.
Status Convolution::choose(CudnnDescriptor graph, int mode) {
  const CudnnApi& api = library_.api;
  CudnnDescriptor heuristic = parts_.create(Kind::heuristic);
  parts_.set_descriptor(heuristic, Attribute::heuristic_graph, graph);
  parts_.set_int(heuristic, Attribute::heuristic_mode, Type::heuristic_mode, mode);
  LATHE_DO(check(parts_.status(), "describe a convolution"));
  LATHE_DO(check(api.finalize(heuristic), "ask for engines"));
  int64_t count = 0;
  LATHE_DO(
      check(api.get(heuristic, Attribute::heuristic_results, Type::descriptor, 0, &count, nullptr),
            "ask for engines"));
  std::vector<CudnnDescriptor> configs;
  for (int64_t i = 0; i < count; ++i) configs.push_back(parts_.create(Kind::engine_config));
  LATHE_DO(check(api.get(heuristic, Attribute::heuristic_results, Type::descriptor, count, &count,
                         configs.data()),
                 "name engines"));
  int last = 0;
  for (int64_t i = 0; i < count; ++i) {
    CudnnDescriptor plan = parts_.create(Kind::plan);
    api.set(plan, Attribute::plan_handle, Type::handle, 1, &library_.handle);
    api.set(plan, Attribute::plan_config, Type::descriptor, 1, &configs[static_cast<size_t>(i)]);
    last = api.finalize(plan);
    if (last != 0) continue;
    int64_t found = 0;
    LATHE_DO(
        check(api.get(plan, Attribute::plan_workspace, Type::int64, 1, &found, &workspace_bytes_),
              "say how much memory it needs"));
    plan_ = plan;
    return Ok{};
  }
  return check(last == 0 ? -1 : last, fmt::format("make any of {} engines", count));
}

Status Convolution::plan(const Program& program, const LibraryLaunch& launch,
                         Workspace& workspace) {
  dtype_ = program.buffers[static_cast<size_t>(launch.buffers.back())].type.dtype;
  const int64_t width = dtype_bytes(dtype_);
  auto place = [&](const std::string& name, size_t position, std::vector<int64_t>& strides) {
    strides = launch_sizes(launch, name);
    Port port{position, strides.empty() ? 0 : strides.front() * width};
    if (!strides.empty()) strides.erase(strides.begin());
    return port;
  };
  const std::vector<int64_t> y_dims = launch_sizes(launch, "y");
  LATHE_CHECK(y_dims.size() == 4, "a convolution without sizes");
  std::vector<int64_t> strides, y_strides;
  const Port y_port = place("y_strides", launch.buffers.size() - 1, y_strides);
  Port port = place("x_strides", 0, strides);
  CudnnDescriptor x = tensor(launch_sizes(launch, "x"), strides, port);
  port = place("w_strides", 1, strides);
  CudnnDescriptor w = tensor(launch_sizes(launch, "w"), strides, port);

  size_t next = 2;
  const std::vector<int64_t> bias = launch_sizes(launch, "bias");
  std::optional<Port> bias_port;
  if (!bias.empty()) bias_port = Port{next++, bias.front() * width};
  std::vector<CudnnDescriptor> operations;
  // The value after `done` operations of the epilogue; the last one is the result.
  auto value = [&](size_t done) {
    const bool is_last = done == launch.epilogue.size();
    return tensor(y_dims, y_strides, is_last ? std::optional(y_port) : std::nullopt);
  };
  CudnnDescriptor now = value(0);
  operations.push_back(operation(launch, x, w, now));
  for (size_t i = 0; i < launch.epilogue.size(); ++i) {
    const std::string& op = launch.epilogue[i];
    CudnnDescriptor other = nullptr;
    if (op == "bias")
      other = tensor({1, y_dims[1], 1, 1}, {y_dims[1], 1, y_dims[1], y_dims[1]}, bias_port);
    if (op == "residual") {
      port = place("residual_strides", next, strides);
      other = tensor(y_dims, strides, port);
    }
    CudnnDescriptor after = value(i + 1);
    operations.push_back(pointwise(op == "relu" ? kCudnnRelu : kCudnnAdd, now, other, after));
    now = after;
  }
  CudnnDescriptor graph = parts_.create(Kind::graph);
  parts_.set(graph, Attribute::graph_handle, Type::handle, 1, &library_.handle);
  parts_.set(graph, Attribute::graph_operations, Type::descriptor,
             static_cast<int64_t>(operations.size()), operations.data());
  parts_.finalize(graph);
  LATHE_DO(check(parts_.status(), "describe a convolution"));
  if (!choose(graph, kCudnnModeA).ok()) LATHE_DO(choose(graph, kCudnnFallback));
  workspace.reserve(static_cast<size_t>(workspace_bytes_));
  return Ok{};
}

Status Convolution::run(CUstream stream, std::span<const CUdeviceptr> buffers,
                        const Workspace& workspace) {
  std::vector<int64_t> ids;
  std::vector<CUdeviceptr> pointers;
  for (size_t i = 0; i < ports_.size(); ++i) {
    ids.push_back(static_cast<int64_t>(i));
    pointers.push_back(buffers[ports_[i].position] +
                       static_cast<CUdeviceptr>(ports_[i].offset_bytes));
  }
  const CUdeviceptr scratch = workspace.address();
  const auto count = static_cast<int64_t>(ids.size());
  Descriptors call(library_.api);
  CudnnDescriptor pack = call.create(Kind::variant_pack);
  call.set(pack, Attribute::pack_ids, Type::int64, count, ids.data());
  call.set(pack, Attribute::pack_pointers, Type::pointer, count, pointers.data());
  call.set(pack, Attribute::pack_workspace, Type::pointer, 1, &scratch);
  call.finalize(pack);
  LATHE_DO(check(call.status(), "name the memory of a convolution"));
  LATHE_DO(check(library_.api.set_stream(library_.handle, stream), "take a stream"));
  return check(library_.api.execute(library_.handle, plan_, pack), "convolve");
}

}  // namespace

Result<LibraryRun> plan_convolution(const Program& program, const LibraryLaunch& launch,
                                    std::shared_ptr<Workspace> workspace) {
  LATHE_TRY(const Cudnn* library, open_cudnn());
  auto convolution = std::make_shared<Convolution>(*library);
  LATHE_DO(convolution->plan(program, launch, *workspace));
  return LibraryRun(
      [convolution, workspace](CUstream stream, std::span<const CUdeviceptr> buffers) {
        return convolution->run(stream, buffers, *workspace);
      });
}

}  // namespace lathe::cuda
