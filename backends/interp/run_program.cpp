// Every buffer gets memory of its own, so that a wrong memory plan shows as a difference.
#include "backends/interp/run_program.h"

#include <fmt/format.h>

#include <cstring>

#include "backends/binding/binding.h"
#include "backends/interp/library_call.h"
#include "ir/loop/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr uint64_t kBytesPerStep = 64;  // of a copy

class InterpretedProgram final : public Executable {
 public:
  InterpretedProgram(const Program& program, const InterpretLimits& limits)
      : program_(program), limits_(limits), memory_(program.buffers.size()) {}

  Status prepare(const CompileOptions& options) {
    LATHE_DO(verify(program_));
    LATHE_DO(check_bytes());
    LATHE_DO(allocate(options));
    return execute(program_.init);
  }

  Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) override {
    LATHE_DO(check_views(program_.name, inputs, input_ports(program_), "input"));
    LATHE_DO(check_views(program_.name, outputs, output_ports(program_), "output"));
    for (size_t i = 0; i < inputs.size(); ++i) copy_in(program_.inputs[i], inputs[i]);
    LATHE_DO(execute(program_.steps));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].num_bytes > 0)
        std::memcpy(outputs[i].bytes, bytes(program_.outputs[i]).data(), outputs[i].num_bytes);
    return Ok{};
  }

  const ExecutableStats& stats() const override { return stats_; }

 private:
  const ProgramBuffer& buffer(BufferId id) const {
    return program_.buffers[static_cast<size_t>(id)];
  }
  std::vector<std::byte>& bytes(BufferId id) { return memory_[static_cast<size_t>(id)]; }

  // The caller's side counts as well: a buffer may be an output any number of times.
  Status check_bytes() const {
    uint64_t left = limits_.max_bytes;
    const auto take = [&](const ProgramBuffer& b) -> Status {
      if (static_cast<uint64_t>(b.num_bytes) <= left) {
        left -= static_cast<uint64_t>(b.num_bytes);
        return Ok{};
      }
      return Diag{.code = code::kTooLarge,
                  .loc = Loc::unknown(),
                  .message = fmt::format("with the {} bytes of buffer '{}', program '{}' takes "
                                         "more memory than the {} bytes that it may",
                                         b.num_bytes, b.name, program_.name, limits_.max_bytes)};
    };
    for (const ProgramBuffer& b : program_.buffers) LATHE_DO(take(b));
    for (BufferId id : program_.inputs) LATHE_DO(take(buffer(id)));
    for (BufferId id : program_.outputs) LATHE_DO(take(buffer(id)));
    return Ok{};
  }

  Status allocate(const CompileOptions& options) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      memory_[i].assign(static_cast<size_t>(b.num_bytes), std::byte{0xff});
      if (b.kind == BufferKind::constant) memory_[i] = b.bytes;
      if (b.kind != BufferKind::weight) continue;
      LATHE_TRY(BufferView view, weight_bytes(b, options));
      copy_in(static_cast<BufferId>(i), view);
    }
    return Ok{};
  }

  void copy_in(BufferId id, const BufferView& view) {
    if (view.num_bytes > 0) std::memcpy(bytes(id).data(), view.bytes, view.num_bytes);
  }

  Status execute(const std::vector<Launch>& launches) {
    steps_ = {limits_.max_steps};
    for (const Launch& launch : launches) LATHE_DO(execute(launch));
    return Ok{};
  }

  Status execute(const Launch& launch) {
    Status status = std::visit([this](const auto& kind) { return execute(kind); }, launch.kind);
    if (status.ok()) return status;
    Diag error = status.error();
    if (error.loc == Loc::unknown() && !launch.origins.empty()) error.loc = launch.origins.front();
    return error;
  }

  Status execute(const CopyLaunch& copy) {
    if (!steps_.take(static_cast<uint64_t>(buffer(copy.source).num_bytes) / kBytesPerStep))
      return out_of_steps(steps_);
    bytes(copy.destination) = bytes(copy.source);
    return Ok{};
  }
  Status execute(const KernelLaunch& launch) {
    const std::vector<int64_t> offsets = byte_offsets(program_, launch);
    std::vector<loop::Memory> views;
    for (size_t i = 0; i < offsets.size(); ++i) {
      std::vector<std::byte>& whole = bytes(launch.buffers[i]);
      const auto offset = static_cast<size_t>(offsets[i]);
      views.push_back({whole.data() + offset, whole.size() - offset});
    }
    return loop::evaluate(program_.kernels[static_cast<size_t>(launch.kernel)], views, {}, steps_);
  }
  Status execute(const LibraryLaunch& launch) {
    return run_call(
        launch.call, program_.buffers, [this](BufferId id) { return bytes(id).data(); }, steps_);
  }
  Status execute(const ShapeLaunch&) { return Ok{}; }  // sizes of verified programs are numbers
  Status execute(const HostLaunch& launch) {
    return Diag{
        .code = code::kUnavailable,
        .loc = Loc::unknown(),
        .message = fmt::format("the interpreter cannot call '{}' of an embedder", launch.function)};
  }

  const Program program_;
  const InterpretLimits limits_;
  loop::StepBudget steps_;
  std::vector<std::vector<std::byte>> memory_;
  ExecutableStats stats_;
};

}  // namespace

Result<std::unique_ptr<Executable>> interpret(const Program& program, const CompileOptions& options,
                                              const InterpretLimits& limits) {
  auto made = std::make_unique<InterpretedProgram>(program, limits);
  LATHE_DO(made->prepare(options));
  return std::unique_ptr<Executable>(std::move(made));
}

Status run_program_interpreted(const Program& program, const CompileOptions& options,
                               std::span<const BufferView> inputs,
                               std::span<const BufferView> outputs) {
  LATHE_TRY(std::unique_ptr<Executable> executable, interpret(program, options));
  return executable->run(inputs, outputs);
}

}  // namespace lathe
