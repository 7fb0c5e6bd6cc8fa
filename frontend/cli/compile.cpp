// lathe compile: what a model becomes, at the stage that --emit names.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/model_flags.h"
#include "frontend/cli/package.h"
#include "frontend/cli/program.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/files.h"
#include "ir/graph/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

struct CompileArguments {
  ModelFlags model;
  std::string emit;
  std::string output;
};

// The pipeline up to where the graph is still there: everything before lower_to_loops.
Result<std::string> emit_graph(const Loaded& loaded, BuildFailure& failure) {
  CompileRequest request = loaded.request;
  LATHE_TRY(Pipeline pipeline, parse_pipeline(request.passes));
  std::string graph_steps;
  for (const PipelineStep& step : pipeline.steps) {
    if (step.pass->leaves >= Form::loops) break;
    graph_steps += (graph_steps.empty() ? "" : ",") + print(step);
  }
  request.passes = graph_steps;
  LATHE_TRY(Lowered lowered, lower(loaded.model, loaded.backend->target(), request, failure));
  return print(lowered.unit.module);
}

Result<std::string> emit(const Loaded& loaded, const std::string& what, BuildFailure& failure) {
  std::vector<std::string> choices = {"graph", "loops", "package"};
  for (const std::string& choice : loaded.backend->emits()) choices.push_back(choice);
  if (std::find(choices.begin(), choices.end(), what) == choices.end()) {
    std::string near = nearest(what, choices);
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("--emit is one of {}, got '{}'{}", fmt::join(choices, ", "), what,
                            near.empty() ? "" : fmt::format("; did you mean '{}'?", near))};
  }
  if (what == "graph") return emit_graph(loaded, failure);
  LATHE_TRY(Lowered lowered,
            lower(loaded.model, loaded.backend->target(), loaded.request, failure));
  failure.locs = lowered.unit.module.locs;
  if (lowered.report.form < Form::loops)
    return Diag{code::kBadForm, Loc::unknown(),
                fmt::format("pipeline '{}' does not lower to loops, expected lower_to_loops in it",
                            loaded.request.passes)};
  if (what == "loops") return print(lowered.unit.program);
  return loaded.backend->emit(lowered.unit.program, what);
}

// Without --emit: how long it takes and how much comes out.
int summarize(const Loaded& loaded) {
  BuildFailure failure;
  Result<Build> made = build(loaded.model, *loaded.backend, loaded.request, failure);
  if (!made.ok()) return report(made.error(), failure.locs, failure.reproducer);
  const ExecutableStats& stats = made->executable->stats();
  say("{}: {} compiled in {} for {} ({})\n", loaded.model.path,
      plural(made->program().num_kernels(), "kernel"), format_ms(made->compile_ms),
      loaded.backend->target().name, loaded.backend->target().isa);
  say("  passes {}, code {}, packing of weights {}\n", format_ms(made->lowered.report.milliseconds),
      format_ms(stats.codegen_ms), format_ms(stats.init_ms));
  say("  {} of packed weights, {} of temporaries\n", format_bytes(stats.persistent_bytes),
      format_bytes(stats.arena_bytes));
  if (!made->tuning.empty()) say("  {}\n", made->tuning);
  if (!made->cache.empty()) say("  {}\n", made->cache);
  say("Next: --emit=graph, loops, {}\n", fmt::join(loaded.backend->emits(), ", "));
  return kHeld;
}

int write(const CompileArguments& arguments, const std::string& bytes) {
  const LocTable locs;
  bool is_binary =
      arguments.emit == "object" || arguments.emit == "wasm" || arguments.emit == "cubin";
  if (arguments.output.empty() && is_binary && isatty(STDOUT_FILENO) != 0)
    return report(
        {code::kBadValue, Loc::unknown(), "machine code is not for a terminal; give -o FILE"},
        locs);
  if (arguments.output.empty()) {
    write_out(bytes);
    return kHeld;
  }
  Status written = write_output(arguments.output, bytes);
  if (!written.ok()) return report(written.error(), locs);
  say("{}  {}\n", arguments.output, format_bytes(static_cast<int64_t>(bytes.size())));
  return kHeld;
}

int run(const CompileArguments& arguments, const std::string& command_line) {
  LocTable locs;
  Result<std::optional<ProgramText>> program =
      load_program(arguments.model.model(), arguments.model.keys(), {}, locs);
  if (!program.ok()) return report(program.error(), locs);
  if (*program) {
    Result<std::string> text = emit_program(**program, arguments.emit);
    return text.ok() ? write(arguments, *text) : report(text.error(), locs);
  }
  Result<Loaded> loaded = load(arguments.model, command_line, locs);
  if (!loaded.ok()) return report(loaded.error(), locs);
  if (arguments.emit.empty()) return summarize(*loaded);
  if (arguments.emit == "package") return emit_package(*loaded, arguments.output);
  BuildFailure failure;
  Result<std::string> bytes = emit(*loaded, arguments.emit, failure);
  if (!bytes.ok()) return report(bytes.error(), failure.locs, failure.reproducer);
  return write(arguments, *bytes);
}

}  // namespace

void add_compile(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "compile", "Show what a model becomes; a program's text is verified and printed");
  auto arguments = std::make_shared<CompileArguments>();
  arguments->model.add_to(*command);
  command->add_option("--emit", arguments->emit,
                      "graph, loops; package: files that need no Lathe; cpu: llvm, asm, object; "
                      "cuda: cuda, ptx, cubin, sass; "
                      "wasm: wasm, wat, layout");
  command->add_option("-o,--output", arguments->output,
                      "a file, of a package a folder; standard output unless given");
  command->callback([arguments, &session] {
    session.action = [arguments, &session] { return run(*arguments, session.command_line); };
  });
}

}  // namespace lathe
