// Binding and running of programs on the CPU.
//
// Kernels rely on 64-byte alignment and on outputs that do not overlap inputs. Callers need not:
// a view that breaks either is staged through a block of ours.
#include "backends/cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ir/support/diag_codes.h"
#include "ir/type/bounds.h"

namespace lathe::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
  auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

}  // namespace

Result<std::unique_ptr<Executable>> CpuExecutable::create(const Program& program,
                                                          const CompileOptions& options,
                                                          KernelFunctions kernels) {
  std::unique_ptr<CpuExecutable> executable(new CpuExecutable());
  executable->name_ = program.name;
  executable->pool_ = ThreadPool::shared(std::max(options.threads, 1));
  executable->stats_.codegen_ms = kernels.codegen_ms;
  executable->kernels_ = std::move(kernels);
  LATHE_TRY(executable->init_, executable->make_steps(program, program.init));
  LATHE_TRY(executable->steps_, executable->make_steps(program, program.steps));
  LATHE_DO(executable->place(program));
  Clock::time_point start = Clock::now();
  LATHE_DO(executable->run_init(program, options));
  executable->stats_.init_ms = 1e3 * seconds_since(start);
  return std::unique_ptr<Executable>(std::move(executable));
}

// ---- launches -----------------------------------------------------------------------------------

Result<std::vector<CpuExecutable::Step>> CpuExecutable::make_steps(
    const Program& program, const std::vector<Launch>& launches) {
  std::vector<Step> steps;
  for (const Launch& launch : launches) {
    LATHE_TRY(Step step, make_step(program, launch));
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<CpuExecutable::Step> CpuExecutable::make_step(const Program& program, const Launch& launch) {
  Step step;
  if (auto* kernel = std::get_if<KernelLaunch>(&launch.kind)) {
    const loop::Kernel& source = program.kernels[static_cast<size_t>(kernel->kernel)];
    LATHE_TRY(step.frame, placement::kernel_frame(source, "cpu"));
    step.function = kernels_.by_kernel[static_cast<size_t>(kernel->kernel)];
    step.grain = std::max<int64_t>(source.grain, 1);
    step.buffers = kernel->buffers;
    step.offsets = byte_offsets(program, *kernel);
    scratch_stride_ =
        std::max(scratch_stride_, align_up(static_cast<size_t>(step.frame.scratch_bytes)));
    return step;
  }
  if (auto* copy = std::get_if<CopyLaunch>(&launch.kind)) {
    step.buffers = {copy->source, copy->destination};
    step.copy_bytes =
        static_cast<size_t>(program.buffers[static_cast<size_t>(copy->source)].num_bytes.value());
    return step;
  }
  if (auto* assertion = std::get_if<AssertLaunch>(&launch.kind)) {
    step.buffers = {assertion->key, assertion->key};
    step.assertion = std::make_shared<AssertLaunch>(*assertion);
    if (!launch.origins.empty()) step.loc = launch.origins.front();
    return step;
  }
  const char* kind = std::holds_alternative<LibraryLaunch>(launch.kind) ? "library"
                     : std::holds_alternative<ShapeLaunch>(launch.kind) ? "shape"
                                                                        : "host";
  return Diag{.code = code::kUnavailable,
              .loc = launch.origins.empty() ? Loc::unknown() : launch.origins.front(),
              .message = fmt::format("the cpu target runs kernel and copy launches, '{}' in "
                                     "program '{}' is a {} launch",
                                     launch.label, program.name, kind)};
}

// ---- memory -------------------------------------------------------------------------------------

Status CpuExecutable::place(const Program& program) {
  const MemoryPlan plan = place_buffers(program, kBufferAlign);
  LATHE_TRY(addresses_, memory_.allocate(plan, Block::allocate));
  LATHE_TRY(scratch_, Block::allocate(scratch_stride_ * static_cast<size_t>(pool_->num_threads()),
                                      "scratch memory"));
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const std::vector<std::byte>& constant = program.buffers[i].bytes;
    if (!constant.empty()) std::memcpy(addresses_[i], constant.data(), constant.size());
  }
  stats_.persistent_bytes = static_cast<int64_t>(plan.persistent_bytes);
  stats_.arena_bytes = static_cast<int64_t>(plan.arena_bytes);
  inputs_ = input_ports(program);
  outputs_ = output_ports(program);
  input_staging_.resize(inputs_.size());
  output_staging_.resize(outputs_.size());
  if (!program.symbols.empty()) bindings_.emplace(program);
  return Ok{};
}

Status CpuExecutable::bind(std::span<const int64_t> sizes) {
  if (!bindings_) return check_no_sizes(name_, sizes);
  LATHE_TRY(std::shared_ptr<const Binding> binding, bindings_->at(sizes));
  if (binding == bound_) return Ok{};
  LATHE_DO(reserve(*binding));
  bound_ = std::move(binding);
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    step.sizes = bound_->sizes[i];
    if (!step.function)
      step.copy_bytes =
          static_cast<size_t>(bound_->num_bytes[static_cast<size_t>(step.buffers[0])]);
  }
  for (size_t id = 0; id < addresses_.size(); ++id)
    if (bound_->offsets[id] >= 0) addresses_[id] = memory_.arena.address() + bound_->offsets[id];
  resize(inputs_, bound_->num_bytes);
  resize(outputs_, bound_->num_bytes);
  stats_.arena_bytes = bound_->arena_bytes;
  return Ok{};
}

// Room for the temporaries and the scratch memory of a binding; what there is only grows.
Status CpuExecutable::reserve(const Binding& binding) {
  size_t stride = scratch_stride_;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const int64_t bytes = steps_[i].frame.scratch_bytes_at(binding.sizes[i]);
    if (bytes > placement::kMaxScratchBytes)
      return Diag{
          code::kTooLarge, Loc::unknown(),
          fmt::format("at these sizes the scratch buffers of a kernel of program '{}' exceed "
                      "{} bytes",
                      name_, placement::kMaxScratchBytes)};
    stride = std::max(stride, align_up(static_cast<size_t>(bytes)));
  }
  if (stride > scratch_stride_) {
    LATHE_TRY(scratch_, Block::allocate(stride * static_cast<size_t>(pool_->num_threads()),
                                        "scratch memory"));
    scratch_stride_ = stride;
  }
  const auto arena_bytes = static_cast<size_t>(binding.arena_bytes);
  if (arena_bytes > memory_.arena.size()) {
    LATHE_TRY(memory_.arena, Block::allocate(arena_bytes, "the arena"));
  }
  return Ok{};
}

// Finds the bytes of a weight; a misaligned one is copied.
Status CpuExecutable::bind_weight(const ProgramBuffer& buffer, BufferId id,
                                  const CompileOptions& options) {
  LATHE_TRY(BufferView view, weight_bytes(buffer, options));
  const size_t num_bytes = view.num_bytes;
  std::byte*& address = addresses_[static_cast<size_t>(id)];
  address = view.bytes;
  if (is_aligned(view.bytes) || num_bytes == 0) return Ok{};
  Block& copy = weight_copies_[id];
  LATHE_TRY(copy, Block::allocate(num_bytes, "a weight"));
  std::memcpy(copy.address(), view.bytes, num_bytes);
  address = copy.address();
  return Ok{};
}

Status CpuExecutable::run_init(const Program& program, const CompileOptions& options) {
  const WeightLifetimes lifetimes = weight_lifetimes(program);
  const auto bind = [&](BufferId id) {
    return bind_weight(program.buffers[static_cast<size_t>(id)], id, options);
  };
  const auto execute_launch = [&](size_t i) -> Status {
    execute(init_[i]);
    return Ok{};
  };
  const auto release = [&](size_t i) -> Status {
    for (BufferId id : lifetimes.end[i]) {
      const auto index = static_cast<size_t>(id);
      addresses_[index] = nullptr;
      weight_copies_.erase(id);
      if (options.release_weight) options.release_weight(program.buffers[index].weight);
    }
    return Ok{};
  };
  LATHE_DO(run_init_launches(lifetimes, bind, execute_launch, release));
  // Copies of weights that steps read stand for the caller's bytes.
  for (const auto& [id, copy] : weight_copies_)
    if (options.release_weight)
      options.release_weight(program.buffers[static_cast<size_t>(id)].weight);
  memory_.init_arena = Block();
  init_.clear();
  return Ok{};
}

std::shared_ptr<const std::byte> CpuExecutable::persistent(BufferId id) const {
  const std::byte* const bytes = addresses_[static_cast<size_t>(id)];
  const Block& block = *memory_.persistent;
  const bool is_there = block.address() <= bytes && bytes < block.address() + block.size();
  return is_there ? std::shared_ptr<const std::byte>(memory_.persistent, bytes) : nullptr;
}

// ---- calls --------------------------------------------------------------------------------------

Status CpuExecutable::bind_input(size_t index, const BufferView& view) {
  const Port& port = inputs_[index];
  std::byte* bytes = view.bytes;
  if (!is_aligned(bytes)) {
    Block& staging = input_staging_[index];
    if (!staging.address() || staging.size() < port.num_bytes) {
      LATHE_TRY(staging, Block::allocate(port.num_bytes, "an input"));
    }
    bytes = staging.address();
    std::memcpy(bytes, view.bytes, port.num_bytes);
  }
  addresses_[static_cast<size_t>(port.id)] = bytes;
  return Ok{};
}

Status CpuExecutable::bind_output(size_t index, const BufferView& view,
                                  std::span<const BufferView> inputs) {
  const Port& port = outputs_[index];
  if (!port.is_own) return Ok{};
  std::byte* bytes = view.bytes;
  bool is_shared = std::any_of(inputs.begin(), inputs.end(), [&](const BufferView& input) {
    return overlap(view.bytes, view.num_bytes, input.bytes, input.num_bytes);
  });
  if (is_shared || !is_aligned(bytes)) {
    Block& staging = output_staging_[index];
    if (!staging.address() || staging.size() < port.num_bytes) {
      LATHE_TRY(staging, Block::allocate(port.num_bytes, "an output"));
    }
    bytes = staging.address();
  }
  addresses_[static_cast<size_t>(port.id)] = bytes;
  return Ok{};
}

Status CpuExecutable::run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) {
  if (bindings_ && !bound_) return needs_sizes(name_);
  LATHE_DO(check_views(name_, inputs, inputs_, "input"));
  LATHE_DO(check_views(name_, outputs, outputs_, "output"));
  for (size_t i = 0; i < inputs.size(); ++i) LATHE_DO(bind_input(i, inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i) LATHE_DO(bind_output(i, outputs[i], inputs));
  step_seconds_.clear();
  for (const Step& step : steps_) {
    Clock::time_point start = is_timing_ ? Clock::now() : Clock::time_point();
    if (step.assertion) {
      LATHE_DO(check(step));
    } else {
      execute(step);
    }
    if (!is_timing_) continue;
    step_seconds_.push_back(seconds_since(start));
  }
  // Outputs that are not in the caller's memory yet; one may be an input that an earlier output
  // overlaps, so those that name inputs go first.
  for (bool is_own : {false, true})
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::byte* from = addresses_[static_cast<size_t>(outputs_[i].id)];
      if (outputs_[i].is_own != is_own || from == outputs[i].bytes || outputs[i].num_bytes == 0)
        continue;
      std::memmove(outputs[i].bytes, from, outputs[i].num_bytes);
    }
  return Ok{};
}

Status CpuExecutable::check(const Step& step) const {
  const AssertLaunch& assertion = *step.assertion;
  int64_t key = 0;
  std::memcpy(&key, addresses_[static_cast<size_t>(assertion.key)], sizeof(key));
  const int64_t low = step.sizes.empty() ? assertion.low.value() : step.sizes[0];
  const int64_t high = step.sizes.empty() ? assertion.high.value() : step.sizes[1];
  return check_bounds(key, low, high, assertion.message, step.loc);
}

void CpuExecutable::execute(const Step& step) {
  if (!step.function) {
    std::memmove(addresses_[static_cast<size_t>(step.buffers[1])],
                 addresses_[static_cast<size_t>(step.buffers[0])], step.copy_bytes);
    return;
  }
  constexpr size_t kInline = 16;
  void* inline_pointers[kInline];
  std::vector<void*> more;
  void** pointers = inline_pointers;
  if (step.buffers.size() >= kInline) {
    more.resize(step.buffers.size() + 1);
    pointers = more.data();
  }
  for (size_t i = 0; i < step.buffers.size(); ++i)
    pointers[i] = addresses_[static_cast<size_t>(step.buffers[i])] + step.offsets[i];
  pointers[step.buffers.size()] = const_cast<int64_t*>(step.sizes.data());

  const int64_t begin = step.frame.lo.at(step.sizes), end = step.frame.hi.at(step.sizes);
  const int64_t stride = step.frame.step;
  if (begin >= end) return;
  int64_t iterations = (end - begin + stride - 1) / stride;
  int threads = pool_->num_threads();
  // Enough chunks to balance, none below the grain.
  constexpr int64_t kChunksPerThread = 16;
  int64_t per_chunk = threads == 1
                          ? iterations
                          : std::max(step.grain, (iterations + kChunksPerThread * threads - 1) /
                                                     (kChunksPerThread * threads));
  int64_t chunks = (iterations + per_chunk - 1) / per_chunk;
  if (chunks == 1) {
    step.function(pointers, begin, end, scratch_.address());
    return;
  }
  pool_->run(chunks, [&](int worker, int64_t chunk) {
    int64_t lo = begin + chunk * per_chunk * stride;
    int64_t hi = std::min(end, lo + per_chunk * stride);
    step.function(pointers, lo, hi,
                  scratch_.address() + static_cast<size_t>(worker) * scratch_stride_);
  });
}

}  // namespace lathe::cpu
