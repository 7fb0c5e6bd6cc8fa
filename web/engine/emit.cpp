// "emit": a program in another language. A row for each one that the engine can write.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/wasm/emit_program.h"
#include "ir/support/diag_codes.h"
#include "web/engine/places.h"
#include "web/engine/sizes.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

// Diags have locations in the run's table.
struct Emitter {
  const char* what;
  Result<Answer> (*emit)(const PipelineRun& run, const Sizes& sizes);
};

Result<Answer> emit_loops(const PipelineRun& run, const Sizes&) {
  Answer answer;
  answer.json["text"] = print(*run.program());
  return answer;
}

// For the instruction set that the run's target has.
Result<wasm::CompiledProgram> compile_wasm(const PipelineRun& run) {
  if (run.target->name != "wasm" || run.form != Form::planned)
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("the run ends in the form '{}' for '{}', expected a planned program "
                            "for simd128 or relaxed",
                            form_name(run.form), run.target->isa)};
  const bool is_relaxed = run.target->isa == "relaxed";
  return wasm::emit_program(*run.program(), is_relaxed ? wasm::Isa::relaxed : wasm::Isa::simd128);
}

// {"layout": where everything lies in memory at these sizes, and how to call it}
Result<Answer> layout_of(const PipelineRun& run, const wasm::CompiledProgram& compiled,
                         const Sizes& sizes) {
  LATHE_TRY(const std::string layout, wasm::layout_json(*run.program(), compiled, sizes));
  Answer answer;
  answer.json["layout"] = Json::parse(layout, nullptr, false);
  return answer;
}

Result<Answer> emit_layout(const PipelineRun& run, const Sizes& sizes) {
  LATHE_TRY(wasm::CompiledProgram compiled, compile_wasm(run));
  return layout_of(run, compiled, sizes);
}

// The layout; bytes: the module, which is the same for all sizes.
Result<Answer> emit_wasm(const PipelineRun& run, const Sizes& sizes) {
  LATHE_TRY(wasm::CompiledProgram compiled, compile_wasm(run));
  LATHE_TRY(Answer answer, layout_of(run, compiled, sizes));
  answer.bytes = own_bytes(wasm::encode(compiled.module));
  return answer;
}

Result<Answer> emit_wat(const PipelineRun& run, const Sizes&) {
  LATHE_TRY(wasm::CompiledProgram compiled, compile_wasm(run));
  Answer answer;
  answer.json["text"] = wasm::to_wat(compiled.module);
  return answer;
}

constexpr Emitter kEmitters[] = {
    {"layout", emit_layout},
    {"loops", emit_loops},
    {"wasm", emit_wasm},
    {"wat", emit_wat},
};

}  // namespace

Result<Answer> handle_emit(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  if (!run->program())
    return request.bad("run", fmt::format("pipeline '{}' ends in the form '{}', expected a program",
                                          run->passes, form_name(run->form)));
  LATHE_TRY(std::string what, request.text("what"));
  LATHE_TRY(const Sizes sizes, sizes_of(request, hints_of(*run->program())));
  std::vector<std::string> choices;
  for (const Emitter& emitter : kEmitters) {
    if (what == emitter.what) {
      Result<Answer> answer = emitter.emit(*run, sizes);
      return answer.ok() ? *std::move(answer) : refused(answer.error(), run->locs);
    }
    choices.push_back(emitter.what);
  }
  return request.bad(
      "what", fmt::format("'what' is '{}', expected one of {}", what, fmt::join(choices, ", ")));
}

}  // namespace lathe
