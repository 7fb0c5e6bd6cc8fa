// Every buffer gets memory of its own, so that a wrong memory plan shows as a difference.
#include "backends/interp/run_program.h"

#include <fmt/format.h>

#include <cstring>

#include "ir/loop/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

class Interpreter {
 public:
  explicit Interpreter(const Program& program)
      : program_(program), memory_(program.buffers.size()) {}

  Status run(const CompileOptions& options, std::span<const BufferView> inputs,
             std::span<const BufferView> outputs) {
    LATHE_DO(verify(program_));
    LATHE_DO(check(inputs, program_.inputs, "input"));
    LATHE_DO(check(outputs, program_.outputs, "output"));
    LATHE_DO(allocate(options));
    for (size_t i = 0; i < inputs.size(); ++i) copy_in(program_.inputs[i], inputs[i]);
    for (const Launch& launch : program_.init) LATHE_DO(execute(launch));
    for (const Launch& launch : program_.steps) LATHE_DO(execute(launch));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].num_bytes > 0)
        std::memcpy(outputs[i].bytes, bytes(program_.outputs[i]).data(), outputs[i].num_bytes);
    return Ok{};
  }

 private:
  const ProgramBuffer& buffer(BufferId id) const {
    return program_.buffers[static_cast<size_t>(id)];
  }
  std::vector<std::byte>& bytes(BufferId id) { return memory_[static_cast<size_t>(id)]; }

  Diag bad_value(std::string message) const {
    return Diag{.code = code::kBadValue, .loc = Loc::unknown(), .message = std::move(message)};
  }

  Status check(std::span<const BufferView> views, const std::vector<BufferId>& ids,
               const char* what) const {
    if (views.size() != ids.size())
      return bad_value(fmt::format("program '{}' takes {} {}s, got {}", program_.name, ids.size(),
                                   what, views.size()));
    for (size_t i = 0; i < ids.size(); ++i)
      if (views[i].num_bytes != static_cast<size_t>(buffer(ids[i]).num_bytes))
        return bad_value(fmt::format("{} {} '{}' of program '{}' has {} bytes, expected {}", what,
                                     i, buffer(ids[i]).name, program_.name, views[i].num_bytes,
                                     buffer(ids[i]).num_bytes));
    return Ok{};
  }

  Status allocate(const CompileOptions& options) {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      memory_[i].resize(static_cast<size_t>(b.num_bytes));
      if (b.kind == BufferKind::constant) memory_[i] = b.bytes;
      if (b.kind != BufferKind::weight) continue;
      if (!options.weight)
        return Diag{.code = code::kMissingWeight,
                    .loc = Loc::unknown(),
                    .message = fmt::format("weight '{}' has no source", b.weight)};
      LATHE_TRY(BufferView view, options.weight(b.weight));
      if (view.num_bytes != memory_[i].size())
        return bad_value(fmt::format("weight '{}' has {} bytes, expected {}", b.weight,
                                     view.num_bytes, memory_[i].size()));
      copy_in(static_cast<BufferId>(i), view);
    }
    return Ok{};
  }

  void copy_in(BufferId id, const BufferView& view) {
    if (view.num_bytes > 0) std::memcpy(bytes(id).data(), view.bytes, view.num_bytes);
  }

  Status execute(const Launch& launch) {
    if (auto* copy = std::get_if<CopyLaunch>(&launch.kind)) {
      bytes(copy->destination) = bytes(copy->source);
      return Ok{};
    }
    auto* kernel = std::get_if<KernelLaunch>(&launch.kind);
    if (!kernel)
      return Diag{.code = code::kUnavailable,
                  .loc = launch.origins.empty() ? Loc::unknown() : launch.origins.front(),
                  .message = fmt::format("the interpreter runs kernel and copy launches, '{}' is "
                                         "another kind",
                                         launch.label)};
    std::vector<loop::Memory> views;
    for (BufferId id : kernel->buffers) views.push_back({bytes(id).data(), bytes(id).size()});
    return loop::evaluate(program_.kernels[static_cast<size_t>(kernel->kernel)], views);
  }

  const Program& program_;
  std::vector<std::vector<std::byte>> memory_;
};

}  // namespace

Status run_program_interpreted(const Program& program, const CompileOptions& options,
                               std::span<const BufferView> inputs,
                               std::span<const BufferView> outputs) {
  return Interpreter(program).run(options, inputs, outputs);
}

}  // namespace lathe
