// Programs from text: printed and summed up, or run by the interpreter.
#include "frontend/cli/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/files.h"
#include "frontend/driver/model.h"
#include "ir/program/buffer_kind.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

constexpr size_t kShownElements = 8;

std::string size_text(const Program& program) {
  const auto num_launches = static_cast<int64_t>(program.init.size() + program.steps.size());
  return fmt::format("{} {} of {}", format_count(num_launches),
                     num_launches == 1 ? "launch" : "launches",
                     plural(static_cast<int64_t>(program.kernels.size()), "kernel"));
}

std::string summary(const ProgramText& text) {
  std::string sizes;
  for (BufferKind kind : {BufferKind::input, BufferKind::output, BufferKind::weight,
                          BufferKind::constant, BufferKind::persistent}) {
    Dim num_bytes = 0;
    for (const ProgramBuffer& buffer : text.program.buffers)
      if (buffer.kind == kind) num_bytes = num_bytes + buffer.num_bytes;
    if (num_bytes != Dim(0))
      sizes += fmt::format(
          "{} {}, ", kind_name(kind),
          num_bytes.is_const() ? format_bytes(num_bytes.value()) : num_bytes.str() + " bytes");
  }
  return fmt::format(
      "{}: a program, verified: {}\n  {}arena {}\nNext: --emit=loops, lathe run {}\n", text.path,
      size_text(text.program), sizes, format_bytes(text.program.arena_bytes), text.path);
}

}  // namespace

Result<std::optional<ProgramText>> load_program(const std::string& model,
                                                const std::vector<std::string>& given,
                                                const std::vector<std::string>& taken,
                                                LocTable& locs) {
  const Result<std::string> path = find_model(model);
  if (!path.ok()) return std::optional<ProgramText>();  // whoever loads the model says why
  LATHE_TRY(std::optional<ProgramText> program, read_program(*path, locs));
  if (!program) return program;
  for (const std::string& key : given)
    if (key != "model" && std::find(taken.begin(), taken.end(), key) == taken.end())
      return Diag{
          code::kBadValue, Loc::unknown(),
          fmt::format(
              "--{} says how a graph becomes a program, and '{}' is one already{}", key, *path,
              taken.empty() ? "" : fmt::format("; here stand --{}", fmt::join(taken, ", --")))};
  return program;
}

Result<std::string> emit_program(const ProgramText& text, const std::string& emit) {
  if (emit.empty()) return summary(text);
  if (emit == "loops") return print(text.program);
  if (emit == "graph")
    return Diag{
        code::kBadForm, Loc::unknown(),
        fmt::format("'{}' is a program, which has no graph left; --emit is loops", text.path)};
  return Diag{code::kBadValue, Loc::unknown(),
              fmt::format("--emit of a program is loops, got '{}': nothing proves that the indices "
                          "of a text stay within its buffers, so it is not compiled; `lathe run` "
                          "interprets it",
                          emit)};
}

int run_program(const ProgramText& text, const ProgramTextOptions& options,
                const std::string& save_outputs) {
  const Result<ProgramResults> results = run_program_text(text.program, options);
  if (!results.ok()) return report(results.error(), text.locs);
  const std::vector<Tensor>& outputs = results->outputs;
  say("{}: {}, interpreted; every access was within its buffer\n", text.path,
      size_text(text.program));
  for (size_t i = 0; i < outputs.size(); ++i)
    say("  {}\n", show_output(results->program, i, outputs[i], kShownElements));
  if (save_outputs.empty()) return kHeld;
  const Status written = save_tensors(save_outputs, outputs);
  return written.ok() ? kHeld : report(written.error(), text.locs);
}

}  // namespace lathe
