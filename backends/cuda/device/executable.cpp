// Binding and running of programs on a GPU.
//
// Everything goes through one stream in order. A call allocates nothing once the memory that its
// host inputs and outputs pass through is there.
#include "backends/cuda/device/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/cuda/device/nvrtc.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAlignment = 256;
constexpr size_t kPortAlignment = 16;  // what the widest access of a thread needs

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

CUdeviceptr as_device(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

bool overlap(CUdeviceptr a, size_t a_bytes, CUdeviceptr b, size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

Result<std::unique_ptr<Executable>> CudaExecutable::create(const Program& program,
                                                           const CompileOptions& options,
                                                           const Target& target) {
  LATHE_DO(verify(program));
  LATHE_TRY(const Device* device, Device::open());
  LATHE_DO(device->use());
  std::unique_ptr<CudaExecutable> executable(
      new CudaExecutable(*device, target, options.reduce_overhead));
  executable->name_ = program.name;
  Clock::time_point start = Clock::now();
  LATHE_DO(
      device->check(device->api().create_stream(&executable->own_stream_, 0), "making a stream"));
  LATHE_DO(executable->make_steps(program, options));
  executable->stats_.codegen_ms = 1e3 * seconds_since(start);
  start = Clock::now();
  LATHE_DO(executable->place(program));
  LATHE_DO(executable->run_init(program, options));
  LATHE_DO(executable->prepare_sizes(program));
  executable->stats_.init_ms = 1e3 * seconds_since(start);
  return std::unique_ptr<Executable>(std::move(executable));
}

CudaExecutable::~CudaExecutable() {
  const DriverApi& api = device_.api();
  if (!device_.use().ok()) return;
  if (own_stream_) api.synchronize(own_stream_);
  for (Bound& bound : seen_)
    for (CUgraphExec recording : bound.recordings.take()) api.destroy_exec(recording);
  for (const Code* code : {&code_, &large_code_})
    for (CUmodule module : code->modules) api.unload_module(module);
  if (own_stream_) api.destroy_stream(own_stream_);
}

// ---- compilation --------------------------------------------------------------------------------

namespace {

template <class Visit>
void for_each_library_launch(const Program& program, Visit visit) {
  for (const auto* launches : {&program.init, &program.steps})
    for (const Launch& launch : *launches)
      if (auto* library = std::get_if<LibraryLaunch>(&launch.kind)) visit(launch, library->call);
}

}  // namespace

Status CudaExecutable::make_steps(const Program& program, const CompileOptions& options) {
  if (!program.symbols.empty()) {
    symbolic_ = program;
    for (ProgramBuffer& buffer : symbolic_->buffers) buffer.bytes.clear();
  }
  plans_ = std::make_unique<LibraryPlans>(symbolic_ ? *symbolic_ : program, device_, workspace_);
  std::vector<LibraryCall> calls;  // those of symbolic sizes are planned when these are bound
  for_each_library_launch(program, [&](const Launch&, const LibraryCall& call) {
    if (symbolic_sizes(call).empty()) calls.push_back(call);
  });
  plans_->start(calls);  // while the kernels compile
  LATHE_DO(load_code(program, true, code_));
  if (Status planned = plans_->finish(); !planned.ok()) {
    for_each_library_launch(program, [&](const Launch& launch, const LibraryCall& call) {
      const std::string why = plans_->refusal(call);
      if (why.empty() || !options.refused) return;
      options.refused->emplace(std::pair(launch.region, std::string(routine_name(call))), why);
    });
    return planned;
  }
  for (const Launch& launch : program.init) {
    LATHE_TRY(Step step, make_step(program, launch));
    look_up_kernel(step, code_);
    if (auto* library = std::get_if<LibraryLaunch>(&launch.kind))
      step.library = plans_->of(library->call);
    init_.push_back(std::move(step));
  }
  for (const Launch& launch : program.steps) {
    LATHE_TRY(Step step, make_step(program, launch));
    steps_.push_back(std::move(step));
  }
  fence_library(program);
  LATHE_TRY(fence_, DeviceMemory::allocate(device_, kAlignment, "a fence"));
  return workspace_->allocate(device_);
}

Status CudaExecutable::load_code(const Program& program, bool has_small_sizes, Code& code) {
  LATHE_TRY(ProgramSource source, emit_program(program, target_, has_small_sizes));
  // Machine code of the target runs on later devices of its generation; others compile PTX.
  bool is_own = fmt::format("sm_{}", device_.capability() / 10 * 10) == target_.isa;
  for (CUmodule module : code.modules) device_.api().unload_module(module);  // of a failed try
  code = {};
  std::vector<std::string> texts;
  for (TranslationUnit& unit : source.units) texts.push_back(std::move(unit.text));
  LATHE_TRY(std::vector<std::string> units,
            compile_units(texts, target_.isa, is_own ? CodeKind::cubin : CodeKind::ptx));
  code.functions.resize(source.symbols.size());
  for (size_t u = 0; u < units.size(); ++u) {
    CUmodule module = nullptr;
    LATHE_DO(device_.check(device_.api().load_module(&module, units[u].c_str()),
                           "loading the kernels of '" + name_ + "'"));
    code.modules.push_back(module);
    for (size_t i : source.units[u].kernels)
      LATHE_DO(device_.check(
          device_.api().function(&code.functions[i], module, source.symbols[i].c_str()),
          "finding kernel '" + source.symbols[i] + "'"));
  }
  code.shapes = std::move(source.shapes);
  code.assumes_small_sizes = source.assumes_small_sizes;
  return Ok{};
}

void CudaExecutable::look_up_kernel(Step& step, const Code& code) const {
  if (step.kernel < 0) return;
  step.function = code.functions[static_cast<size_t>(step.kernel)];
  step.shape = code.shapes[static_cast<size_t>(step.kernel)];
}

// Without what depends on sizes.
Result<CudaExecutable::Step> CudaExecutable::make_step(const Program& program,
                                                       const Launch& launch) {
  Step step;
  step.label = launch.label;
  step.buffers = launch.buffers();
  if (auto* kernel = std::get_if<KernelLaunch>(&launch.kind)) {
    step.kernel = kernel->kernel;
    step.offsets = byte_offsets(program, *kernel);
  } else if (auto* copy = std::get_if<CopyLaunch>(&launch.kind)) {
    const Dim& num_bytes = program.buffers[static_cast<size_t>(copy->source)].num_bytes;
    step.is_copy = true;
    if (num_bytes.is_const()) step.copy_bytes = static_cast<size_t>(num_bytes.value());
  } else if (!std::holds_alternative<LibraryLaunch>(launch.kind)) {
    return Diag{code::kUnavailable,
                launch.origins.empty() ? Loc::unknown() : launch.origins.front(),
                fmt::format("the cuda target runs kernel, library and copy launches, '{}' in "
                            "program '{}' is another kind",
                            launch.label, program.name)};
  }
  return step;
}

// cuDNN's kernels let the next one of theirs start before they are done, and what that one waits
// for is the launch right before it: a residual that an earlier launch made may not be there yet
// (seen with cuDNN 9 on an H200). A memset between the two waits for everything.
void CudaExecutable::fence_library(const Program& program) {
  std::vector<size_t> writer(program.buffers.size(), SIZE_MAX);
  bool follows_cudnn = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    auto* library = std::get_if<LibraryLaunch>(&program.steps[i].kind);
    const bool waits_early = library && is_cudnn(library->call);
    const std::vector<BufferId>& buffers = steps_[i].buffers;
    if (waits_early && follows_cudnn)
      for (size_t b = 0; b + 1 < buffers.size(); ++b) {
        const size_t made_at = writer[static_cast<size_t>(buffers[b])];
        if (made_at != SIZE_MAX && made_at + 1 != i) steps_[i].is_fenced = true;
      }
    follows_cudnn = waits_early;
    for (const BufferUse& use : uses(program, program.steps[i]))
      if (use.is_written) writer[static_cast<size_t>(use.id)] = i;
  }
}

// ---- memory -------------------------------------------------------------------------------------

Status CudaExecutable::place(const Program& program) {
  weights_.resize(program.buffers.size());
  const MemoryPlan plan = place_buffers(program, kAlignment);
  LATHE_TRY(addresses_, memory_.allocate(plan, [&](size_t num_bytes, const char* what) {
    return DeviceMemory::allocate(device_, num_bytes, what);
  }));
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const std::vector<std::byte>& constant = program.buffers[i].bytes;
    if (!constant.empty())
      LATHE_DO(copy(addresses_[i], as_device(constant.data()), constant.size(), "a constant"));
  }
  stats_.persistent_bytes = static_cast<int64_t>(plan.persistent_bytes);
  stats_.arena_bytes = static_cast<int64_t>(plan.arena_bytes);
  inputs_ = input_ports(program);
  outputs_ = output_ports(program);
  input_staging_.resize(inputs_.size());
  output_staging_.resize(outputs_.size());
  return Ok{};
}

Status CudaExecutable::copy(CUdeviceptr to, CUdeviceptr from, size_t num_bytes,
                            const std::string& what) {
  if (num_bytes == 0 || to == from) return Ok{};
  CUstream stream = stream_ ? stream_ : own_stream_;
  return device_.check(device_.api().copy(to, from, num_bytes, stream), "copying " + what);
}

Status CudaExecutable::upload(const ProgramBuffer& buffer, BufferId id,
                              const CompileOptions& options) {
  LATHE_TRY(BufferView view, weight_bytes(buffer, options));
  const size_t num_bytes = view.num_bytes;
  if (num_bytes > 0 && is_usable(view, kAlignment)) {  // the caller's, for as long as this lives
    address(id) = as_device(view.bytes);
    return Ok{};
  }
  DeviceMemory& memory = weights_[static_cast<size_t>(id)];
  LATHE_TRY(memory, DeviceMemory::allocate(device_, num_bytes, "a weight"));
  address(id) = memory.address();
  LATHE_DO(copy(memory.address(), as_device(view.bytes), num_bytes, "a weight"));
  // The bytes may go away now.
  LATHE_DO(device_.check(device_.api().synchronize(own_stream_), "copying a weight"));
  if (options.release_weight) options.release_weight(buffer.weight);
  return Ok{};
}

// Weights that only init reads are on the device from their first to their last launch.
Status CudaExecutable::run_init(const Program& program, const CompileOptions& options) {
  const WeightLifetimes lifetimes = weight_lifetimes(program);
  const auto bind = [&](BufferId id) {
    return upload(program.buffers[static_cast<size_t>(id)], id, options);
  };
  const auto execute_launch = [&](size_t i) { return execute(init_[i], own_stream_); };
  const auto release = [&](size_t i) -> Status {
    LATHE_DO(device_.check(device_.api().synchronize(own_stream_),
                           "preparing weights with " + init_[i].label));
    for (BufferId id : lifetimes.end[i]) {
      address(id) = 0;
      weights_[static_cast<size_t>(id)] = DeviceMemory();
    }
    return Ok{};
  };
  LATHE_DO(run_init_launches(lifetimes, bind, execute_launch, release));
  LATHE_DO(device_.check(device_.api().synchronize(own_stream_), "preparing weights"));
  memory_.init_arena = DeviceMemory();
  init_.clear();
  return Ok{};
}

// ---- calls --------------------------------------------------------------------------------------

bool CudaExecutable::is_usable(const BufferView& view, size_t alignment) const {
  if (reinterpret_cast<uintptr_t>(view.bytes) % alignment != 0) return false;
  // This form of the question takes the host's pointers for an answer, not for an error.
  unsigned type = 0;
  void* values[] = {&type};
  CUresult known =
      device_.api().pointer_attributes(1, &kPointerMemoryType, values, as_device(view.bytes));
  return known == kCudaSuccess && type == kMemoryDevice;
}

// A recording has the addresses of inputs too, which callers change as they like: then they go
// through memory of our own.
Status CudaExecutable::bind_inputs(std::span<const BufferView> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = inputs_[i];
    address(port.id) = as_device(inputs[i].bytes);
    if (port.num_bytes == 0 || (!is_captured_ && is_usable(inputs[i], kPortAlignment))) continue;
    LATHE_DO(stage(port, input_staging_[i]));
    LATHE_DO(copy(address(port.id), as_device(inputs[i].bytes), port.num_bytes,
                  "input '" + port.name + "'"));
  }
  return Ok{};
}

Status CudaExecutable::bind_outputs(std::span<const BufferView> inputs,
                                    std::span<const BufferView> outputs, bool is_staged) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port& port = outputs_[i];
    if (!port.is_own) continue;
    address(port.id) = as_device(outputs[i].bytes);
    bool is_apart = !is_staged && is_usable(outputs[i], kPortAlignment);
    for (const BufferView& input : inputs)
      is_apart = is_apart && !overlap(address(port.id), port.num_bytes, as_device(input.bytes),
                                      input.num_bytes);
    if (port.num_bytes > 0 && !is_apart) LATHE_DO(stage(port, output_staging_[i]));
  }
  return Ok{};
}

Status CudaExecutable::run(std::span<const BufferView> inputs,
                           std::span<const BufferView> outputs) {
  if (!bound_) return needs_sizes(name_);
  LATHE_DO(check_views(name_, inputs, inputs_, "input"));
  LATHE_DO(check_views(name_, outputs, outputs_, "output"));
  LATHE_DO(device_.use());
  stream_ = caller_stream_ ? caller_stream_ : own_stream_;
  LATHE_DO(bind_inputs(inputs));
  step_seconds_.clear();
  if (is_captured_ && !is_timing_) {
    LATHE_DO(run_recorded(inputs, outputs));
  } else {
    LATHE_DO(bind_outputs(inputs, outputs, false));
    LATHE_DO(is_timing_ ? time_all(stream_) : execute_all(stream_));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    LATHE_DO(copy(as_device(outputs[i].bytes), address(outputs_[i].id), outputs[i].num_bytes,
                  "output '" + outputs_[i].name + "'"));
  if (caller_stream_) return Ok{};
  return device_.check(device_.api().synchronize(stream_), "running '" + name_ + "'");
}

Status CudaExecutable::copy(const BufferView& from, const BufferView& to) {
  LATHE_DO(device_.use());
  LATHE_DO(
      copy(as_device(to.bytes), as_device(from.bytes), from.num_bytes, "what the run changed"));
  if (caller_stream_) return Ok{};
  return device_.check(device_.api().synchronize(stream_), "copying what the run changed");
}

Result<std::shared_ptr<std::byte>> CudaExecutable::allocate(size_t num_bytes,
                                                            const std::string& what) {
  LATHE_DO(device_.use());
  LATHE_TRY(DeviceMemory made, DeviceMemory::allocate(device_, num_bytes, what));
  const auto memory = std::make_shared<DeviceMemory>(std::move(made));
  return std::shared_ptr<std::byte>(memory, reinterpret_cast<std::byte*>(memory->address()));
}

Status CudaExecutable::execute(const Step& step, CUstream stream) {
  if (step.is_fenced)
    LATHE_DO(device_.check(device_.api().fill(fence_.address(), 0, 1, stream), "a fence"));
  if (step.library) {
    std::vector<CUdeviceptr> buffers;
    for (BufferId id : step.buffers) buffers.push_back(address(id));
    return (*step.library)(stream, buffers);
  }
  if (step.kernel < 0)
    return device_.check(step.copy_bytes == 0 ? kCudaSuccess
                                              : device_.api().copy(address(step.buffers[1]),
                                                                   address(step.buffers[0]),
                                                                   step.copy_bytes, stream),
                         step.label);
  const int64_t blocks = step.shape.blocks_at(step.sizes);
  if (blocks == 0) return Ok{};
  std::vector<CUdeviceptr> begins;
  std::vector<void*> params;
  begins.reserve(step.buffers.size());  // params point into it
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    begins.push_back(address(step.buffers[i]) + static_cast<CUdeviceptr>(step.offsets[i]));
    params.push_back(&begins.back());
  }
  // The driver copies as many bytes as a parameter has, of an int the lower ones.
  for (const int64_t& size : step.sizes) params.push_back(const_cast<int64_t*>(&size));
  return device_.check(device_.api().launch(step.function, static_cast<unsigned>(blocks), 1, 1,
                                            static_cast<unsigned>(step.shape.threads),
                                            static_cast<unsigned>(step.shape.rows()), 1, 0, stream,
                                            params.data(), nullptr),
                       "launching " + step.label);
}

Status CudaExecutable::execute_all(CUstream stream) {
  for (const Step& step : steps_) LATHE_DO(execute(step, stream));
  return Ok{};
}

Status CudaExecutable::time_all(CUstream stream) {
  const DriverApi& api = device_.api();
  std::vector<CUevent> events(steps_.size() + 1, nullptr);
  auto measure = [&]() -> Status {
    for (CUevent& event : events) LATHE_DO(device_.check(api.create_event(&event, 0), "timing"));
    LATHE_DO(device_.check(api.record_event(events[0], stream), "timing"));
    for (size_t i = 0; i < steps_.size(); ++i) {
      LATHE_DO(execute(steps_[i], stream));
      LATHE_DO(device_.check(api.record_event(events[i + 1], stream), "timing"));
    }
    LATHE_DO(device_.check(api.synchronize(stream), "running '" + name_ + "'"));
    for (size_t i = 0; i < steps_.size(); ++i) {
      float milliseconds = 0;
      LATHE_DO(device_.check(api.elapsed(&milliseconds, events[i], events[i + 1]), "timing"));
      step_seconds_.push_back(1e-3 * static_cast<double>(milliseconds));
    }
    return Ok{};
  };
  Status status = measure();
  for (CUevent event : events)
    if (event) api.destroy_event(event);
  return status;
}

Recordings::Places CudaExecutable::output_places() {
  Recordings::Places places;
  for (const Port& port : outputs_) places.push_back(port.num_bytes > 0 ? address(port.id) : 0);
  return places;
}

Status CudaExecutable::run_recorded(std::span<const BufferView> inputs,
                                    std::span<const BufferView> outputs) {
  LATHE_DO(bind_outputs(inputs, outputs, false));
  if (steps_.empty()) return Ok{};
  bool has_callers = false;
  for (size_t i = 0; i < outputs.size(); ++i)
    has_callers = has_callers || (outputs_[i].is_own && outputs_[i].num_bytes > 0 &&
                                  address(outputs_[i].id) == as_device(outputs[i].bytes));
  if (has_callers) {
    const Recordings::Advice advice = bound_->recordings.ask(output_places());
    if (advice == Recordings::Advice::run) return execute_all(stream_);
    if (advice == Recordings::Advice::stage) LATHE_DO(bind_outputs(inputs, outputs, true));
  }
  const Recordings::Places places = output_places();
  if (!bound_->recordings.find(places)) LATHE_DO(record(places));
  CUgraphExec recording = bound_->recordings.find(places);
  return device_.check(device_.api().launch_graph(recording, stream_), "replaying '" + name_ + "'");
}

Status CudaExecutable::record(const Recordings::Places& places) {
  const DriverApi& api = device_.api();
  LATHE_DO(device_.check(api.synchronize(stream_), "running '" + name_ + "'"));
  LATHE_DO(execute_all(own_stream_));  // what libraries do once is done before the recording
  LATHE_DO(device_.check(api.synchronize(own_stream_), "running '" + name_ + "'"));
  LATHE_DO(device_.check(api.begin_capture(own_stream_, kCaptureThreadLocal), "recording"));
  Status recorded = execute_all(own_stream_);
  CUgraph graph = nullptr;
  Status ended = device_.check(api.end_capture(own_stream_, &graph), "recording");
  LATHE_DO(recorded);
  LATHE_DO(ended);
  CUgraphExec made = nullptr;
  Status instantiated = device_.check(api.instantiate(&made, graph, 0), "making a graph");
  api.destroy_graph(graph);
  LATHE_DO(instantiated);
  if (CUgraphExec oldest = bound_->recordings.keep(places, made)) {
    LATHE_DO(wait());
    api.destroy_exec(oldest);
  }
  return Ok{};
}

}  // namespace lathe::cuda
