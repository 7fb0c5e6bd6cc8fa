// Weights, inputs and outputs go through the process's socket; everything else stays in its memory.
#include "backends/wasm/node/executable.h"

#include <fmt/format.h>

#include <chrono>

#include "ir/support/diag_codes.h"

namespace lathe::wasm {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Diag bad_value(std::string message) {
  return Diag{.code = code::kBadValue, .loc = Loc::unknown(), .message = std::move(message)};
}

}  // namespace

Result<std::unique_ptr<Executable>> NodeExecutable::create(const Program& program,
                                                           const CompileOptions& options, Isa isa,
                                                           const NodeInfo& node) {
  LATHE_DO(verify(program));
  std::unique_ptr<NodeExecutable> executable(new NodeExecutable());
  executable->name_ = program.name;
  executable->num_steps_ = program.steps.size();
  Clock::time_point start = Clock::now();
  LATHE_TRY(CompiledProgram compiled, emit_program(program, isa));
  std::string bytes = encode(compiled.module);
  executable->stats_.codegen_ms = milliseconds_since(start);
  const Layout& layout = compiled.layout;
  executable->stats_.persistent_bytes = layout.persistent_bytes;
  executable->stats_.arena_bytes = layout.arena_bytes;
  auto ports = [&](const std::vector<BufferId>& ids, std::vector<Port>& into) {
    for (BufferId id : ids) {
      const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(id)];
      into.push_back({buffer.name, static_cast<uint32_t>(layout.address[static_cast<size_t>(id)]),
                      static_cast<size_t>(buffer.num_bytes)});
    }
  };
  ports(program.inputs, executable->inputs_);
  ports(program.outputs, executable->outputs_);
  LATHE_TRY(executable->process_, borrow_process(node));
  LATHE_DO(executable->process_->load(bytes, compiled.module.num_pages));
  start = Clock::now();
  LATHE_DO(executable->run_init(program, layout, options));
  executable->stats_.init_ms = milliseconds_since(start);
  return std::unique_ptr<Executable>(std::move(executable));
}

Status NodeExecutable::write_weights(const Program& program, const std::vector<Placement>& places,
                                     const CompileOptions& options) {
  for (const Placement& place : places) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(place.buffer)];
    if (!options.weight)
      return Diag{.code = code::kMissingWeight,
                  .loc = Loc::unknown(),
                  .message = fmt::format("weight '{}' has no source", buffer.weight)};
    LATHE_TRY(BufferView view, options.weight(buffer.weight));
    if (view.num_bytes != static_cast<size_t>(buffer.num_bytes) ||
        (!view.bytes && view.num_bytes > 0))
      return bad_value(fmt::format("weight '{}' has {} bytes, expected {}", buffer.weight,
                                   view.num_bytes, buffer.num_bytes));
    LATHE_DO(process_->write(static_cast<uint32_t>(place.address), {view.bytes, view.num_bytes}));
  }
  return Ok{};
}

// A weight's bytes are copied into the process, so each is let go after the last launch that wants
// it.
Status NodeExecutable::run_init(const Program& program, const Layout& layout,
                                const CompileOptions& options) {
  std::vector<size_t> last_use(program.buffers.size(), 0);
  for (size_t i = 0; i < layout.staged.size(); ++i)
    for (const Placement& place : layout.staged[i]) last_use[static_cast<size_t>(place.buffer)] = i;
  auto release = [&](const Placement& place) {
    if (options.release_weight)
      options.release_weight(program.buffers[static_cast<size_t>(place.buffer)].weight);
  };
  LATHE_DO(write_weights(program, layout.weights, options));
  for (const Placement& place : layout.weights) release(place);
  for (size_t i = 0; i < layout.staged.size(); ++i) {
    LATHE_DO(write_weights(program, layout.staged[i], options));
    LATHE_DO(process_->call(fmt::format("init{}", i)));
    for (const Placement& place : layout.staged[i])
      if (last_use[static_cast<size_t>(place.buffer)] == i) release(place);
  }
  return Ok{};
}

Status NodeExecutable::check_ports(std::span<const BufferView> views,
                                   const std::vector<Port>& ports, const char* what) const {
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

Status NodeExecutable::run(std::span<const BufferView> inputs,
                           std::span<const BufferView> outputs) {
  LATHE_DO(check_ports(inputs, inputs_, "input"));
  LATHE_DO(check_ports(outputs, outputs_, "output"));
  for (size_t i = 0; i < inputs.size(); ++i)
    LATHE_DO(process_->write(inputs_[i].address, {inputs[i].bytes, inputs[i].num_bytes}));
  step_seconds_.clear();
  if (is_timing_) {
    LATHE_TRY(step_seconds_, process_->steps(num_steps_));
    for (double& time : step_seconds_) time /= 1e3;
  } else {
    LATHE_DO(process_->call("run"));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    LATHE_DO(process_->read(outputs_[i].address, {outputs[i].bytes, outputs[i].num_bytes}));
  return Ok{};
}

}  // namespace lathe::wasm
