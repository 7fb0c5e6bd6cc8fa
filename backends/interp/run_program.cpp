// Every buffer gets memory of its own, so that a wrong memory plan shows as a difference.
#include "backends/interp/run_program.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "backends/binding/binding.h"
#include "backends/interp/library_call.h"
#include "ir/loop/text.h"
#include "ir/program/binding.h"
#include "ir/program/split.h"
#include "ir/support/diag_codes.h"
#include "ir/type/bounds.h"

namespace lathe {
namespace {

constexpr uint64_t kBytesPerStep = 64;  // of a copy

class InterpretedProgram final : public Executable {
 public:
  InterpretedProgram(const Program& program, const InterpretLimits& limits)
      : program_(program),
        limits_(limits),
        memory_(program.buffers.size()),
        inputs_(input_ports(program)),
        outputs_(output_ports(program)) {}

  Status prepare(const CompileOptions& options) {
    LATHE_DO(verify(program_));
    if (!program_.symbols.empty()) LATHE_DO(check_is_one_piece(program_));
    binder_.emplace(program_);
    for (const ProgramBuffer& b : program_.buffers)
      num_bytes_.push_back(b.num_bytes.is_const() ? b.num_bytes.value() : 0);
    LATHE_DO(check_bytes(num_bytes_));
    LATHE_DO(fill_buffers(options));
    is_bound_ = program_.symbols.empty();
    return execute(program_.init);
  }

  Status bind(std::span<const int64_t> sizes) override {
    LATHE_TRY(Binding binding, binder_->bind(sizes));
    LATHE_DO(check_bytes(binding.num_bytes));
    // Before anything is changed, as memory may run out.
    std::vector<std::vector<std::byte>> memory(memory_.size());
    for (size_t i = 0; i < memory.size(); ++i)
      if (!program_.buffers[i].num_bytes.is_const())
        memory[i].assign(static_cast<size_t>(binding.num_bytes[i]), std::byte{0xff});
    num_bytes_ = std::move(binding.num_bytes);
    sizes_ = std::move(binding.sizes);
    resize(inputs_, num_bytes_);
    resize(outputs_, num_bytes_);
    for (size_t i = 0; i < memory.size(); ++i)
      if (!program_.buffers[i].num_bytes.is_const()) memory_[i] = std::move(memory[i]);
    is_bound_ = true;
    return Ok{};
  }

  Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) override {
    if (!is_bound_) return needs_sizes(program_.name);
    LATHE_DO(check_views(program_.name, inputs, inputs_, "input"));
    LATHE_DO(check_views(program_.name, outputs, outputs_, "output"));
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
  Status check_bytes(const std::vector<int64_t>& num_bytes) const {
    uint64_t left = limits_.max_bytes;
    const auto take = [&](BufferId id) -> Status {
      const auto bytes = static_cast<uint64_t>(num_bytes[static_cast<size_t>(id)]);
      if (bytes <= left) {
        left -= bytes;
        return Ok{};
      }
      return Diag{.code = code::kTooLarge,
                  .loc = Loc::unknown(),
                  .message = fmt::format("with the {} bytes of buffer '{}', program '{}' takes "
                                         "more memory than the {} bytes that it may",
                                         bytes, buffer(id).name, program_.name, limits_.max_bytes)};
    };
    for (size_t i = 0; i < num_bytes.size(); ++i) LATHE_DO(take(static_cast<BufferId>(i)));
    for (BufferId id : program_.inputs) LATHE_DO(take(id));
    for (BufferId id : program_.outputs) LATHE_DO(take(id));
    return Ok{};
  }

  Status fill_buffers(const CompileOptions& options) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      memory_[i].assign(static_cast<size_t>(num_bytes_[i]), std::byte{0xff});
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
    const bool has_sizes = &launches == &program_.steps && !sizes_.empty();
    for (size_t i = 0; i < launches.size(); ++i)
      LATHE_DO(execute(launches[i], has_sizes ? sizes_[i] : std::span<const int64_t>()));
    return Ok{};
  }

  Status execute(const Launch& launch, std::span<const int64_t> sizes) {
    Status status = std::visit([&](const auto& kind) { return execute(kind, sizes); }, launch.kind);
    if (status.ok()) return status;
    Diag error = status.error();
    if (error.loc == Loc::unknown() && !launch.origins.empty()) error.loc = launch.origins.front();
    return error;
  }

  Status execute(const CopyLaunch& copy, std::span<const int64_t>) {
    if (!steps_.take(bytes(copy.source).size() / kBytesPerStep)) return out_of_steps(steps_);
    bytes(copy.destination) = bytes(copy.source);
    return Ok{};
  }
  Status execute(const KernelLaunch& launch, std::span<const int64_t> sizes) {
    const std::vector<int64_t> offsets = byte_offsets(program_, launch);
    std::vector<loop::Memory> views;
    for (size_t i = 0; i < offsets.size(); ++i) {
      std::vector<std::byte>& whole = bytes(launch.buffers[i]);
      const auto offset = static_cast<size_t>(offsets[i]);
      views.push_back({whole.data() + offset, whole.size() - offset});
    }
    return loop::evaluate(program_.kernels[static_cast<size_t>(launch.kernel)], views, sizes,
                          steps_);
  }
  Status execute(const LibraryLaunch& launch, std::span<const int64_t> sizes) {
    const LibraryCall call = at_sizes(launch.call, sizes);
    if (is_of_nothing(call)) return Ok{};
    return run_call(
        call, program_.buffers, [this](BufferId id) { return bytes(id).data(); }, steps_);
  }
  Status execute(const ShapeLaunch&, std::span<const int64_t>) { return Ok{}; }
  Status execute(const AssertLaunch& launch, std::span<const int64_t> sizes) {
    int64_t key = 0;
    std::memcpy(&key, bytes(launch.key).data(), sizeof(key));
    return check_bounds(key, sizes.empty() ? launch.low.value() : sizes[0],
                        sizes.empty() ? launch.high.value() : sizes[1], launch.message,
                        Loc::unknown());
  }
  Status execute(const HostLaunch& launch, std::span<const int64_t>) {
    return Diag{
        .code = code::kUnavailable,
        .loc = Loc::unknown(),
        .message = fmt::format("the interpreter cannot call '{}' of an embedder", launch.function)};
  }

  const Program program_;
  const InterpretLimits limits_;
  loop::StepBudget steps_;
  std::optional<Binder> binder_;
  bool is_bound_ = false;
  std::vector<int64_t> num_bytes_;           // by buffer; 0 where nothing is bound yet
  std::vector<std::vector<int64_t>> sizes_;  // by step
  std::vector<std::vector<std::byte>> memory_;
  std::vector<Port> inputs_, outputs_;
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
