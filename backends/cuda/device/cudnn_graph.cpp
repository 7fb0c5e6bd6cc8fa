// cuDNN's graph API: see cudnn_graph.h.
#include "backends/cuda/device/cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "backends/cuda/device/library.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

using Attribute = CudnnAttribute;
using Kind = CudnnKind;
using Type = CudnnType;

constexpr int64_t kAlignment = 16;

// Opened once for each process. Handles stay: plans were made with them.
struct Cudnn {
  std::mutex mutex;
  bool is_open = false;
  CudnnApi api;
  std::vector<CudnnHandle> idle;
};

Cudnn& cudnn() {
  static Cudnn opened;
  return opened;
}

Status find_all(const Library& library, CudnnApi& api) {
  if (!library.find(api.version, "cudnnGetVersion").ok()) api.version = nullptr;
  LATHE_DO(library.find(api.create, "cudnnCreate"));
  LATHE_DO(library.find(api.set_stream, "cudnnSetStream"));
  LATHE_DO(library.find(api.create_descriptor, "cudnnBackendCreateDescriptor"));
  LATHE_DO(library.find(api.destroy_descriptor, "cudnnBackendDestroyDescriptor"));
  LATHE_DO(library.find(api.set, "cudnnBackendSetAttribute"));
  LATHE_DO(library.find(api.get, "cudnnBackendGetAttribute"));
  LATHE_DO(library.find(api.finalize, "cudnnBackendFinalize"));
  return library.find(api.execute, "cudnnBackendExecute");
}

Status failed(int status, const std::string& what) {
  if (status == 0) return Ok{};
  return Diag{code::kUnavailable, Loc::unknown(),
              fmt::format("cuDNN failed to {} (status {})", what, status)};
}

}  // namespace

Result<CudnnLease> CudnnLease::take() {
  Cudnn& library = cudnn();
  {
    std::lock_guard lock(library.mutex);
    if (!library.is_open) {
      LATHE_TRY(const Library* file, Library::open({"libcudnn.so.9"}, "cuDNN"));
      LATHE_DO(find_all(*file, library.api));
      library.is_open = true;
    }
    if (!library.idle.empty()) {
      CudnnHandle handle = library.idle.back();
      library.idle.pop_back();
      return CudnnLease(library.api, handle);
    }
  }
  CudnnHandle handle = nullptr;
  LATHE_DO(failed(library.api.create(&handle), "start"));
  return CudnnLease(library.api, handle);
}

CudnnLease::CudnnLease(CudnnLease&& other) noexcept
    : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)) {}

CudnnLease::~CudnnLease() {
  if (!handle_) return;
  Cudnn& library = cudnn();
  std::lock_guard lock(library.mutex);
  library.idle.push_back(handle_);
}

// ---- descriptors --------------------------------------------------------------------------------

CudnnDescriptors::~CudnnDescriptors() {
  for (size_t i = made_.size(); i-- > 0;) api_.destroy_descriptor(made_[i]);
}

CudnnDescriptor CudnnDescriptors::create(Kind kind) {
  CudnnDescriptor descriptor = nullptr;
  note(api_.create_descriptor(kind, &descriptor));
  if (descriptor) made_.push_back(descriptor);
  return descriptor;
}

void CudnnDescriptors::set(CudnnDescriptor to, Attribute attribute, Type type, int64_t count,
                           const void* values) {
  if (status_ == 0) note(api_.set(to, attribute, type, count, values));
}

int cudnn_dtype(DType dtype) {
  return dtype == DType::f16 ? kCudnnHalf : dtype == DType::bf16 ? kCudnnBf16 : kCudnnFloat;
}

// ---- the graph ----------------------------------------------------------------------------------

CudnnGraph::CudnnGraph(const CudnnLease& lease, std::string what)
    : api_(lease.api()), what_(std::move(what)), parts_(lease.api()) {}

Status CudnnGraph::check(int status, const std::string& what) const {
  return failed(status, fmt::format("{} {}", what, what_));
}

CudnnDescriptor CudnnGraph::tensor(int dtype, const std::vector<int64_t>& dims,
                                   const std::vector<int64_t>& strides, int64_t id, bool is_virtual,
                                   bool is_constant) {
  CudnnDescriptor made = parts_.create(Kind::tensor);
  parts_.set_int(made, Attribute::tensor_dtype, Type::dtype, dtype);
  parts_.set_sizes(made, Attribute::tensor_dims, dims);
  parts_.set_sizes(made, Attribute::tensor_strides, strides);
  parts_.set(made, Attribute::tensor_id, Type::int64, 1, &id);
  parts_.set(made, Attribute::tensor_alignment, Type::int64, 1, &kAlignment);
  parts_.set(made, Attribute::tensor_is_virtual, Type::boolean, 1, &is_virtual);
  if (is_constant) parts_.set(made, Attribute::tensor_is_by_value, Type::boolean, 1, &is_constant);
  parts_.finalize(made);
  return made;
}

CudnnDescriptor CudnnGraph::memory(int dtype, const std::vector<int64_t>& dims,
                                   const std::vector<int64_t>& strides, Port port) {
  ports_.emplace_back(next_id_, port);
  return tensor(dtype, dims, strides, next_id_++, false, false);
}

CudnnDescriptor CudnnGraph::memory(const CallTensor& operand, DType dtype, size_t position) {
  return memory(cudnn_dtype(dtype), numbers(operand.shape), numbers(operand.strides),
                {position, operand.offset.value() * dtype_bytes(dtype)});
}

CudnnDescriptor CudnnGraph::value(const std::vector<int64_t>& dims,
                                  const std::vector<int64_t>& strides, int dtype) {
  return tensor(dtype, dims, strides, next_id_++, true, false);
}

CudnnDescriptor CudnnGraph::constant(float x, size_t rank) {
  const std::vector<int64_t> ones(rank, 1);
  constants_.emplace_back(next_id_, std::make_unique<float>(x));
  return tensor(kCudnnFloat, ones, ones, next_id_++, false, true);
}

void CudnnGraph::add(Kind kind, Operands operands) {
  CudnnDescriptor made = parts_.create(kind);
  for (const auto& [attribute, descriptor] : operands)
    if (descriptor) parts_.set(made, attribute, Type::descriptor, 1, &descriptor);
  const float one = 1, zero = 0;
  if (kind == Kind::convolution_forward) {
    parts_.set(made, Attribute::forward_alpha, Type::f32, 1, &one);
    parts_.set(made, Attribute::forward_beta, Type::f32, 1, &zero);
  }
  if (kind == Kind::convolution_backward_data) {
    parts_.set(made, Attribute::backward_alpha, Type::f32, 1, &one);
    parts_.set(made, Attribute::backward_beta, Type::f32, 1, &zero);
  }
  parts_.finalize(made);
  operations_.push_back(made);
}

void CudnnGraph::add_pointwise(const CudnnFunction& function, CudnnDescriptor x, CudnnDescriptor b,
                               CudnnDescriptor t, CudnnDescriptor y) {
  CudnnDescriptor made = parts_.create(Kind::pointwise);
  parts_.set_int(made, Attribute::pointwise_mode, Type::pointwise_mode, function.mode);
  parts_.set_int(made, Attribute::pointwise_precision, Type::dtype, function.precision);
  if (function.mode == kCudnnRelu)
    parts_.set_int(made, Attribute::pointwise_nan, Type::nan, kCudnnPropagateNan);
  if (function.axis) parts_.set(made, Attribute::pointwise_axis, Type::int64, 1, &*function.axis);
  parts_.finalize(made);
  add(Kind::pointwise_operation, {{Attribute::operation_pointwise, made},
                                  {Attribute::operation_x, x},
                                  {Attribute::operation_b, b},
                                  {Attribute::operation_t, t},
                                  {Attribute::operation_y, y}});
}

// ---- the plan -----------------------------------------------------------------------------------

// Whether the engine's tensor cores would read f32 as TF32, or it narrows what it reads; true when
// it does not say.
bool CudnnGraph::may_narrow(CudnnDescriptor config) {
  CudnnDescriptor engine = parts_.create(Kind::engine);
  int64_t count = 0;
  if (api_.get(config, Attribute::config_engine, Type::descriptor, 1, &count, &engine) != 0 ||
      api_.get(engine, Attribute::engine_notes, Type::note, 0, &count, nullptr) != 0)
    return true;
  std::vector<int> notes(static_cast<size_t>(count));
  if (api_.get(engine, Attribute::engine_notes, Type::note, count, &count, notes.data()) != 0)
    return true;
  return std::any_of(notes.begin(), notes.end(), [](int note) {
    return note == kCudnnTensorCores || note == kCudnnNarrowerInputs;
  });
}

// The first engine that takes the graph.
Status CudnnGraph::choose(const CudnnLease& lease, CudnnDescriptor graph, int mode) {
  CudnnDescriptor heuristic = parts_.create(Kind::heuristic);
  parts_.set(heuristic, Attribute::heuristic_graph, Type::descriptor, 1, &graph);
  parts_.set_int(heuristic, Attribute::heuristic_mode, Type::heuristic_mode, mode);
  LATHE_DO(check(parts_.status(), "describe how to"));
  LATHE_DO(check(api_.finalize(heuristic), "name engines that"));
  int64_t count = 0;
  LATHE_DO(
      check(api_.get(heuristic, Attribute::heuristic_results, Type::descriptor, 0, &count, nullptr),
            "count engines that"));
  std::vector<CudnnDescriptor> configs;
  for (int64_t i = 0; i < count; ++i) configs.push_back(parts_.create(Kind::engine_config));
  LATHE_DO(check(api_.get(heuristic, Attribute::heuristic_results, Type::descriptor, count, &count,
                          configs.data()),
                 "list engines that"));
  int last = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (keeps_f32_ && may_narrow(configs[static_cast<size_t>(i)])) continue;
    CudnnDescriptor plan = parts_.create(Kind::plan);
    api_.set(plan, Attribute::plan_handle, Type::handle, 1, &lease.handle());
    api_.set(plan, Attribute::plan_config, Type::descriptor, 1, &configs[static_cast<size_t>(i)]);
    last = api_.finalize(plan);
    if (last != 0) continue;
    int64_t found = 0;
    LATHE_DO(
        check(api_.get(plan, Attribute::plan_workspace, Type::int64, 1, &found, &workspace_bytes_),
              "say what memory it needs to"));
    plan_ = plan;
    return Ok{};
  }
  return check(last == 0 ? -1 : last, fmt::format("make any of {} engines that", count));
}

Status CudnnGraph::plan(const CudnnLease& lease, Workspace& workspace) {
  CudnnDescriptor graph = parts_.create(Kind::graph);
  parts_.set(graph, Attribute::graph_handle, Type::handle, 1, &lease.handle());
  parts_.set(graph, Attribute::graph_operations, Type::descriptor,
             static_cast<int64_t>(operations_.size()), operations_.data());
  parts_.finalize(graph);
  LATHE_DO(check(parts_.status(), "describe how to"));
  if (!choose(lease, graph, kCudnnModeA).ok()) LATHE_DO(choose(lease, graph, kCudnnFallback));
  workspace.reserve(static_cast<size_t>(workspace_bytes_));
  return Ok{};
}

Status CudnnGraph::run(CUstream stream, std::span<const CUdeviceptr> buffers,
                       const Workspace& workspace) const {
  std::vector<int64_t> ids;
  std::vector<CUdeviceptr> pointers;
  for (const auto& [id, port] : ports_) {
    ids.push_back(id);
    pointers.push_back(buffers[port.position] + static_cast<CUdeviceptr>(port.offset_bytes));
  }
  for (const auto& [id, x] : constants_) {
    ids.push_back(id);
    pointers.push_back(reinterpret_cast<CUdeviceptr>(x.get()));
  }
  const CUdeviceptr scratch = workspace.address();
  const auto count = static_cast<int64_t>(ids.size());
  CudnnDescriptors call(api_);
  CudnnDescriptor pack = call.create(Kind::variant_pack);
  call.set(pack, Attribute::pack_ids, Type::int64, count, ids.data());
  call.set(pack, Attribute::pack_pointers, Type::pointer, count, pointers.data());
  call.set(pack, Attribute::pack_workspace, Type::pointer, 1, &scratch);
  call.finalize(pack);
  LATHE_DO(check(call.status(), "name the memory to"));
  LATHE_TRY(const CudnnLease lease, CudnnLease::take());
  LATHE_DO(check(api_.set_stream(lease.handle(), stream), "take a stream to"));
  return check(api_.execute(lease.handle(), plan_, pack), "start to");
}

Result<LibraryRun> plan_graph(const std::string& what, std::shared_ptr<Workspace> workspace,
                              const std::function<Status(CudnnGraph& graph)>& describe) {
  LATHE_TRY(const CudnnLease lease, CudnnLease::take());
  auto graph = std::make_shared<CudnnGraph>(lease, what);
  LATHE_DO(describe(*graph));
  LATHE_DO(graph->plan(lease, *workspace));
  return LibraryRun([graph, workspace](CUstream stream, std::span<const CUdeviceptr> buffers) {
    return graph->run(stream, buffers, *workspace);
  });
}

}  // namespace lathe::cuda
