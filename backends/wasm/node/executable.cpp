// Weights, inputs and outputs go through the process's socket; everything else stays in its memory.
#include "backends/wasm/node/executable.h"

#include <fmt/format.h>

#include <chrono>

#include "ir/type/bounds.h"

namespace lathe::wasm {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<Executable>> NodeExecutable::create(const Program& program,
                                                           const CompileOptions& options, Isa isa,
                                                           const NodeInfo& node) {
  LATHE_DO(verify(program));
  std::unique_ptr<NodeExecutable> executable(new NodeExecutable());
  executable->name_ = program.name;
  executable->num_steps_ = program.steps.size();
  for (size_t i = 0; i < program.steps.size(); ++i)
    if (const auto* assertion = std::get_if<AssertLaunch>(&program.steps[i].kind)) {
      const std::vector<Loc>& origins = program.steps[i].origins;
      executable->assertions_.push_back(
          {*assertion, i, origins.empty() ? Loc::unknown() : origins.front()});
    }
  Clock::time_point start = Clock::now();
  LATHE_TRY(CompiledProgram compiled, emit_program(program, isa));
  std::string bytes = encode(compiled.module);
  executable->stats_.codegen_ms = milliseconds_since(start);
  const Layout& layout = compiled.layout;
  executable->stats_.persistent_bytes = layout.persistent_bytes;
  executable->stats_.arena_bytes = layout.arena_bytes;
  executable->inputs_ = input_ports(program);
  executable->outputs_ = output_ports(program);
  for (int64_t address : layout.address)
    executable->addresses_.push_back(static_cast<uint32_t>(address));
  LATHE_TRY(executable->process_, borrow_process(node));
  LATHE_DO(executable->process_->load(bytes, compiled.module.num_pages));
  start = Clock::now();
  LATHE_DO(executable->run_init(program, layout, options));
  executable->stats_.init_ms = milliseconds_since(start);
  if (!program.symbols.empty()) {
    executable->symbolic_ = std::make_unique<Symbolic>(program);
    Symbolic& symbolic = *executable->symbolic_;
    symbolic.program = program;
    symbolic.program.kernels.clear();
    symbolic.compiled = {{}, std::move(compiled.layout), std::move(compiled.frames)};
  }
  return std::unique_ptr<Executable>(std::move(executable));
}

Status NodeExecutable::write_weights(const Program& program, const std::vector<Placement>& places,
                                     const CompileOptions& options) {
  for (const Placement& place : places) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(place.buffer)];
    LATHE_TRY(BufferView view, weight_bytes(buffer, options));
    LATHE_DO(process_->write(static_cast<uint32_t>(place.address), {view.bytes, view.num_bytes}));
  }
  return Ok{};
}

// A weight's bytes are copied into the process, so each is let go after the last launch that wants
// it.
Status NodeExecutable::run_init(const Program& program, const Layout& layout,
                                const CompileOptions& options) {
  const WeightLifetimes lifetimes = weight_lifetimes(program);
  const auto release = [&](const std::vector<BufferId>& ids) {
    if (!options.release_weight) return;
    for (BufferId id : ids) options.release_weight(program.buffers[static_cast<size_t>(id)].weight);
  };
  LATHE_DO(write_weights(program, layout.weights, options));
  release(lifetimes.kept);
  for (size_t i = 0; i < layout.staged.size(); ++i) {
    LATHE_DO(write_weights(program, layout.staged[i], options));
    LATHE_DO(process_->call(fmt::format("init{}", i)));
    release(lifetimes.end[i]);
  }
  return Ok{};
}

Status NodeExecutable::bind(std::span<const int64_t> sizes) {
  if (!symbolic_) return check_no_sizes(name_, sizes);
  LATHE_TRY(std::shared_ptr<const Binding> binding, symbolic_->bindings.at(sizes));
  if (binding == symbolic_->bound) return Ok{};
  const Program& program = symbolic_->program;
  const CompiledProgram& compiled = symbolic_->compiled;
  const int64_t scratch_bytes = compiled.scratch_bytes_at(program, *binding);
  LATHE_TRY(const BoundLayout bound,
            bind_layout(program, compiled.layout, *binding, scratch_bytes));
  LATHE_DO(process_->grow(static_cast<uint32_t>(bound.num_bytes / kPageBytes)));
  LATHE_DO(process_->write(static_cast<uint32_t>(compiled.layout.table),
                           std::as_bytes(std::span(bound.table))));
  for (size_t i = 0; i < addresses_.size(); ++i)
    addresses_[i] = static_cast<uint32_t>(bound.address[i]);
  resize(inputs_, binding->num_bytes);
  resize(outputs_, binding->num_bytes);
  stats_.arena_bytes = binding->arena_bytes;
  symbolic_->bound = std::move(binding);
  return Ok{};
}

Status NodeExecutable::run(std::span<const BufferView> inputs,
                           std::span<const BufferView> outputs) {
  if (symbolic_ && !symbolic_->bound) return needs_sizes(name_);
  LATHE_DO(check_views(name_, inputs, inputs_, "input"));
  LATHE_DO(check_views(name_, outputs, outputs_, "output"));
  for (size_t i = 0; i < inputs.size(); ++i)
    LATHE_DO(process_->write(address_of(inputs_[i]), {inputs[i].bytes, inputs[i].num_bytes}));
  step_seconds_.clear();
  if (is_timing_) {
    auto seconds = process_->steps(num_steps_);
    if (!seconds.ok()) return explain(seconds.error());
    step_seconds_ = std::move(*seconds);
    for (double& time : step_seconds_) time /= 1e3;
  } else if (auto called = process_->call("run"); !called.ok()) {
    return explain(called.error());
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    LATHE_DO(process_->read(address_of(outputs_[i]), {outputs[i].bytes, outputs[i].num_bytes}));
  return Ok{};
}

Status NodeExecutable::explain(Status trapped) {
  for (const Assertion& assertion : assertions_) {
    int64_t key = 0;
    const uint32_t address = addresses_[static_cast<size_t>(assertion.launch.key)];
    LATHE_DO(process_->read(address, {reinterpret_cast<std::byte*>(&key), sizeof(key)}));
    const auto bound = [&](const Dim& dim, size_t at) {
      return dim.is_const() ? dim.value() : symbolic_->bound->sizes[assertion.step][at];
    };
    LATHE_DO(check_bounds(key, bound(assertion.launch.low, 0), bound(assertion.launch.high, 1),
                          assertion.launch.message, assertion.loc));
  }
  return trapped;
}

}  // namespace lathe::wasm
