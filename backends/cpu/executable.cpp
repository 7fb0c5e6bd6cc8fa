// Binding and running of programs on the CPU.
//
// Kernels rely on 64-byte alignment and on outputs that do not overlap inputs. Callers need not:
// a view that breaks either is staged through a block of ours.
#include "backends/cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ir/loop/text.h"
#include "ir/program/overlap.h"
#include "ir/support/diag_codes.h"

namespace lathe::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Diag bad_value(std::string message) {
  return Diag{.code = code::kBadValue, .loc = Loc::unknown(), .message = std::move(message)};
}

bool overlap(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
  auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

template <class F>
void for_each_launch(const Program& program, F&& visit) {
  for (const Launch& launch : program.init) visit(launch);
  for (const Launch& launch : program.steps) visit(launch);
}

}  // namespace

Result<std::unique_ptr<Executable>> CpuExecutable::create(const Program& program,
                                                          const CompileOptions& options, Isa isa,
                                                          ObjectCache& cache) {
  LATHE_DO(verify(program));
  std::unique_ptr<CpuExecutable> executable(new CpuExecutable());
  executable->name_ = program.name;
  executable->pool_ = ThreadPool::shared(std::max(options.threads, 1));
  Clock::time_point start = Clock::now();
  LATHE_DO(executable->make_steps(program, options, isa, cache));
  executable->stats_.codegen_ms = 1e3 * seconds_since(start);
  LATHE_DO(executable->bind(program));
  start = Clock::now();
  LATHE_DO(executable->run_init(program, options));
  executable->stats_.init_ms = 1e3 * seconds_since(start);
  return std::unique_ptr<Executable>(std::move(executable));
}

// ---- compilation --------------------------------------------------------------------------------

Status CpuExecutable::make_steps(const Program& program, const CompileOptions& options, Isa isa,
                                 ObjectCache& cache) {
  std::vector<bool> is_used(program.kernels.size());
  const std::vector<bool> noalias = noalias_kernels(program);
  for_each_launch(program, [&](const Launch& launch) {
    auto* kernel = std::get_if<KernelLaunch>(&launch.kind);
    if (kernel) is_used[static_cast<size_t>(kernel->kernel)] = true;
  });
  std::vector<KernelSource> sources;
  function_of_.assign(program.kernels.size(), -1);
  for (size_t i = 0; i < program.kernels.size(); ++i) {
    if (!is_used[i]) continue;
    LATHE_DO(loop::verify(program.kernels[i], true));
    function_of_[i] = static_cast<int>(sources.size());
    sources.push_back({&program.kernels[i], {isa, noalias[i]}});
  }
  for (const Launch& launch : program.init) {
    LATHE_TRY(Step step, make_step(program, launch));
    init_.push_back(std::move(step));
  }
  for (const Launch& launch : program.steps) {
    LATHE_TRY(Step step, make_step(program, launch));
    steps_.push_back(std::move(step));
  }
  LATHE_TRY(jit_, Jit::compile(sources, options.threads, cache));
  auto attach = [&](const std::vector<Launch>& launches, std::vector<Step>& steps) {
    for (size_t i = 0; i < launches.size(); ++i)
      if (auto* kernel = std::get_if<KernelLaunch>(&launches[i].kind)) {
        int function = function_of_[static_cast<size_t>(kernel->kernel)];
        steps[i].function = jit_->functions()[static_cast<size_t>(function)];
      }
  };
  attach(program.init, init_);
  attach(program.steps, steps_);
  return Ok{};
}

Result<CpuExecutable::Step> CpuExecutable::make_step(const Program& program, const Launch& launch) {
  Step step;
  if (auto* kernel = std::get_if<KernelLaunch>(&launch.kind)) {
    const loop::Kernel& source = program.kernels[static_cast<size_t>(kernel->kernel)];
    LATHE_TRY(step.frame, kernel_frame(source));
    step.grain = std::max<int64_t>(source.grain, 1);
    step.buffers = kernel->buffers;
    scratch_stride_ =
        std::max(scratch_stride_, align_up(static_cast<size_t>(step.frame.scratch_bytes)));
    return step;
  }
  if (auto* copy = std::get_if<CopyLaunch>(&launch.kind)) {
    step.buffers = {copy->source, copy->destination};
    step.copy_bytes =
        static_cast<size_t>(program.buffers[static_cast<size_t>(copy->source)].num_bytes);
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

Status CpuExecutable::bind(const Program& program) {
  addresses_.assign(program.buffers.size(), nullptr);
  std::vector<bool> in_init(program.buffers.size());
  for (const Step& step : init_)
    for (BufferId id : step.buffers) in_init[static_cast<size_t>(id)] = true;

  auto arena_bytes = align_up(static_cast<size_t>(program.arena_bytes));
  auto init_bytes = align_up(static_cast<size_t>(program.init_arena_bytes));
  size_t persistent_bytes = 0;
  std::vector<size_t> offsets(program.buffers.size());
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& b = program.buffers[i];
    if (b.kind == BufferKind::temporary && b.offset >= 0) {
      offsets[i] = static_cast<size_t>(b.offset);
      continue;
    }
    bool is_kept = b.kind == BufferKind::persistent || b.kind == BufferKind::constant;
    if (!is_kept && b.kind != BufferKind::temporary) continue;
    size_t& total = is_kept ? persistent_bytes : in_init[i] ? init_bytes : arena_bytes;
    offsets[i] = total;
    total += align_up(static_cast<size_t>(b.num_bytes));
  }
  LATHE_TRY(arena_, Block::allocate(arena_bytes, "the arena"));
  LATHE_TRY(init_arena_, Block::allocate(init_bytes, "the arena of init"));
  LATHE_TRY(persistent_, Block::allocate(persistent_bytes, "packed weights"));
  LATHE_TRY(scratch_, Block::allocate(scratch_stride_ * static_cast<size_t>(pool_->num_threads()),
                                      "scratch memory"));
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const ProgramBuffer& b = program.buffers[i];
    if (b.kind == BufferKind::temporary)
      addresses_[i] = (in_init[i] ? init_arena_ : arena_).bytes() + offsets[i];
    if (b.kind == BufferKind::persistent || b.kind == BufferKind::constant)
      addresses_[i] = persistent_.bytes() + offsets[i];
    if (!b.bytes.empty()) std::memcpy(addresses_[i], b.bytes.data(), b.bytes.size());
  }
  stats_.persistent_bytes = static_cast<int64_t>(persistent_bytes);
  stats_.arena_bytes = static_cast<int64_t>(arena_bytes);

  auto port = [&](BufferId id) {
    const ProgramBuffer& b = program.buffers[static_cast<size_t>(id)];
    return Port{id, b.name, static_cast<size_t>(b.num_bytes), true, {}};
  };
  for (BufferId id : program.inputs) inputs_.push_back(port(id));
  for (BufferId id : program.outputs) {
    bool is_repeat = std::any_of(outputs_.begin(), outputs_.end(),
                                 [&](const Port& earlier) { return earlier.id == id; });
    outputs_.push_back(port(id));
    outputs_.back().is_bound =
        !is_repeat && program.buffers[static_cast<size_t>(id)].kind == BufferKind::output;
  }
  return Ok{};
}

// Finds the bytes of a weight; a misaligned one is copied.
Status CpuExecutable::bind_weight(const ProgramBuffer& buffer, BufferId id,
                                  const CompileOptions& options) {
  if (!options.weight)
    return Diag{.code = code::kMissingWeight,
                .loc = Loc::unknown(),
                .message = fmt::format("weight '{}' has no source", buffer.weight)};
  LATHE_TRY(BufferView view, options.weight(buffer.weight));
  auto num_bytes = static_cast<size_t>(buffer.num_bytes);
  if (view.num_bytes != num_bytes || (!view.bytes && num_bytes > 0))
    return bad_value(fmt::format("weight '{}' has {} bytes, expected {}", buffer.weight,
                                 view.num_bytes, num_bytes));
  std::byte*& address = addresses_[static_cast<size_t>(id)];
  address = view.bytes;
  if (is_aligned(view.bytes) || num_bytes == 0) return Ok{};
  Block& copy = weight_copies_[id];
  LATHE_TRY(copy, Block::allocate(num_bytes, "a weight"));
  std::memcpy(copy.bytes(), view.bytes, num_bytes);
  address = copy.bytes();
  return Ok{};
}

Status CpuExecutable::run_init(const Program& program, const CompileOptions& options) {
  std::vector<int> last_use = last_uses_in_init(program);

  auto is_weight = [&](BufferId id) {
    return program.buffers[static_cast<size_t>(id)].kind == BufferKind::weight;
  };
  for (size_t id = 0; id < program.buffers.size(); ++id)
    if (is_weight(static_cast<BufferId>(id)) && last_use[id] == kUsedLater)
      LATHE_DO(bind_weight(program.buffers[id], static_cast<BufferId>(id), options));
  for (size_t i = 0; i < init_.size(); ++i) {
    for (BufferId id : init_[i].buffers)
      if (is_weight(id) && !addresses_[static_cast<size_t>(id)])
        LATHE_DO(bind_weight(program.buffers[static_cast<size_t>(id)], id, options));
    execute(init_[i]);
    for (BufferId id : init_[i].buffers) {
      auto index = static_cast<size_t>(id);
      if (!is_weight(id) || last_use[index] != static_cast<int>(i)) continue;
      last_use[index] = -1;  // a launch may name it twice
      addresses_[index] = nullptr;
      weight_copies_.erase(id);
      if (options.release_weight) options.release_weight(program.buffers[index].weight);
    }
  }
  // Copies of weights that steps read stand for the caller's bytes.
  for (const auto& [id, copy] : weight_copies_)
    if (options.release_weight)
      options.release_weight(program.buffers[static_cast<size_t>(id)].weight);
  init_arena_ = Block();
  init_.clear();
  return Ok{};
}

// ---- calls --------------------------------------------------------------------------------------

Status CpuExecutable::check_ports(std::span<const BufferView> views, const std::vector<Port>& ports,
                                  const char* what) const {
  if (views.size() != ports.size())
    return bad_value(
        fmt::format("program '{}' takes {} {}s, got {}", name_, ports.size(), what, views.size()));
  for (size_t i = 0; i < ports.size(); ++i)
    if (views[i].num_bytes != ports[i].num_bytes || (!views[i].bytes && ports[i].num_bytes > 0))
      return bad_value(fmt::format(
          "{} {} '{}' of program '{}' has {} bytes, expected {}", what, i, ports[i].name, name_,
          views[i].bytes ? views[i].num_bytes : size_t{0}, ports[i].num_bytes));
  return Ok{};
}

Status CpuExecutable::bind_input(Port& port, const BufferView& view) {
  std::byte* bytes = view.bytes;
  if (!is_aligned(bytes)) {
    if (!port.staging.bytes()) {
      LATHE_TRY(port.staging, Block::allocate(port.num_bytes, "an input"));
    }
    bytes = port.staging.bytes();
    std::memcpy(bytes, view.bytes, port.num_bytes);
  }
  addresses_[static_cast<size_t>(port.id)] = bytes;
  return Ok{};
}

Status CpuExecutable::bind_output(Port& port, const BufferView& view,
                                  std::span<const BufferView> inputs) {
  if (!port.is_bound) return Ok{};
  std::byte* bytes = view.bytes;
  bool is_shared = std::any_of(inputs.begin(), inputs.end(), [&](const BufferView& input) {
    return overlap(view.bytes, view.num_bytes, input.bytes, input.num_bytes);
  });
  if (is_shared || !is_aligned(bytes)) {
    if (!port.staging.bytes()) {
      LATHE_TRY(port.staging, Block::allocate(port.num_bytes, "an output"));
    }
    bytes = port.staging.bytes();
  }
  addresses_[static_cast<size_t>(port.id)] = bytes;
  return Ok{};
}

Status CpuExecutable::run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) {
  LATHE_DO(check_ports(inputs, inputs_, "input"));
  LATHE_DO(check_ports(outputs, outputs_, "output"));
  for (size_t i = 0; i < inputs.size(); ++i) LATHE_DO(bind_input(inputs_[i], inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i)
    LATHE_DO(bind_output(outputs_[i], outputs[i], inputs));
  step_seconds_.clear();
  for (const Step& step : steps_) {
    if (!is_timing_) {
      execute(step);
      continue;
    }
    Clock::time_point start = Clock::now();
    execute(step);
    step_seconds_.push_back(seconds_since(start));
  }
  // Outputs that are not in the caller's memory yet; one may be an input that an earlier output
  // overlaps, so those that name inputs go first.
  for (bool is_bound : {false, true})
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::byte* from = addresses_[static_cast<size_t>(outputs_[i].id)];
      if (outputs_[i].is_bound != is_bound || from == outputs[i].bytes || outputs[i].num_bytes == 0)
        continue;
      std::memmove(outputs[i].bytes, from, outputs[i].num_bytes);
    }
  return Ok{};
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
  if (step.buffers.size() > kInline) {
    more.resize(step.buffers.size());
    pointers = more.data();
  }
  for (size_t i = 0; i < step.buffers.size(); ++i)
    pointers[i] = addresses_[static_cast<size_t>(step.buffers[i])];

  const KernelFrame& frame = step.frame;
  if (frame.lo >= frame.hi) return;
  int64_t iterations = (frame.hi - frame.lo + frame.step - 1) / frame.step;
  int threads = pool_->num_threads();
  // Enough chunks to balance, none below the grain.
  constexpr int64_t kChunksPerThread = 16;
  int64_t per_chunk = threads == 1
                          ? iterations
                          : std::max(step.grain, (iterations + kChunksPerThread * threads - 1) /
                                                     (kChunksPerThread * threads));
  int64_t chunks = (iterations + per_chunk - 1) / per_chunk;
  if (chunks == 1) {
    step.function(pointers, frame.lo, frame.hi, scratch_.bytes());
    return;
  }
  pool_->run(chunks, [&](int worker, int64_t chunk) {
    int64_t lo = frame.lo + chunk * per_chunk * frame.step;
    int64_t hi = std::min(frame.hi, lo + per_chunk * frame.step);
    step.function(pointers, lo, hi,
                  scratch_.bytes() + static_cast<size_t>(worker) * scratch_stride_);
  });
}

}  // namespace lathe::cpu
