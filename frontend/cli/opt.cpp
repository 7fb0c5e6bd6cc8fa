// lathe opt: passes on a model or on a .lathe text, of a graph or of a program, step by step.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/model_flags.h"
#include "frontend/cli/program.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/check.h"
#include "frontend/driver/files.h"
#include "frontend/driver/places.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"
#include "ir/support/shell_word.h"

namespace lathe {

namespace fs = std::filesystem;

namespace {

struct OptArguments {
  ModelFlags model;
  bool diff = false;
  bool table = false;
  bool print_after = false;
  bool json = false;
  bool locs = false;
  std::string stop_after;
  std::vector<std::string> skip;
  std::string bisect;
  std::string output;
};

// Lines of a diff that are worth a person's time; the rest is counted.
constexpr size_t kMaxChanges = 40;

void show_changes(const std::vector<NodeChange>& changes, char sign, const LocTable& locs,
                  bool color) {
  for (size_t i = 0; i < changes.size() && i < kMaxChanges; ++i) {
    std::string place = describe_place(locs, changes[i].loc);
    std::string line = fmt::format("  {} {}", sign, changes[i].text);
    line = styled(line, sign == '-' ? Style::bad : Style::good, color);
    if (place.empty()) {
      say("{}\n", line);
    } else {
      say(spread(line, styled(place, Style::dim, color), output_width()));
    }
  }
  if (changes.size() > kMaxChanges) say("  {} and {} more\n", sign, changes.size() - kMaxChanges);
}

void show_refusals(const std::vector<Refusal>& refusals, const LocTable& locs) {
  std::map<std::string, std::pair<int64_t, Loc>> counted;
  for (const Refusal& refusal : refusals) {
    auto [entry, is_new] = counted.try_emplace(refusal.message, 0, refusal.loc);
    ++entry->second.first;
  }
  for (const auto& [message, count] : counted) {
    std::string place = describe_place(locs, count.second);
    say("  left alone: {}{}{}\n", message, place.empty() ? "" : "  " + place,
        count.first > 1 ? fmt::format("  ({} times)", count.first) : "");
  }
}

void show_report(const Lowered& lowered, bool with_diff) {
  bool color = color_on_stdout();
  const LocTable& locs = lowered.unit.module.locs;
  for (const PassRecord& record : lowered.report.passes) {
    PipelineReport one;
    one.passes.push_back(record);
    std::string line = to_table(one);
    say(record.changed == Changed::yes ? line : styled(line, Style::dim, color));
    if (!with_diff) continue;
    show_changes(record.diff.removed, '-', locs, color);
    show_changes(record.diff.added, '+', locs, color);
    show_refusals(record.refusals, locs);
  }
}

std::string result_text(const Lowered& lowered, bool with_locs) {
  if (lowered.report.form >= Form::loops) return print(lowered.unit.program);
  return print(lowered.unit.module, {.locations = with_locs});
}

std::string text_of(const Unit& unit, Form form) {
  return form >= Form::loops ? print(unit.program) : print(unit.module);
}

// Whether the command succeeds on the text: of a graph, or of a program where the pipeline lowers.
// The text lies in a folder that nobody else can write to.
Result<bool> command_accepts(const std::string& command, const std::string& text) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "lathe-bisect-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr)
    return Diag{code::kUnavailable, Loc::unknown(), "no temporary folder can be made"};
  const std::string path = folder + "/graph.lathe";
  Status written = write_output(path, text);
  int status = 0;
  if (written.ok()) status = std::system(fmt::format("{} {}", command, shell_word(path)).c_str());
  fs::remove_all(folder, error);
  LATHE_DO(written);
  return status == 0;
}

// Whether the interpreters, of graphs or of programs, give the results of the imported graph.
class ResultCheck {
 public:
  static Result<ResultCheck> create(const Model& model) {
    ResultCheck check(model);
    LATHE_TRY(check.inputs_, random_inputs(model, 0));
    LATHE_TRY(check.weights_, reference_module(model));
    LATHE_TRY(check.reference_,
              evaluate_reference(check.weights_, check.inputs_, {.dims = model.dims}));
    return check;
  }
  Result<bool> accepts(const Unit& unit, Form form) const {
    return form >= Form::loops ? accepts(unit.program) : accepts(unit.module);
  }

 private:
  explicit ResultCheck(const Model& model) : model_(&model) {}

  Result<bool> accepts(const Module& graph) const {
    Module module = clone(graph);
    for (const auto& [name, weight] : weights_.weights) module.weights[name] = weight;
    // Bisection may have left out what makes the graph functional.
    Model candidate;
    candidate.module = std::move(module);
    LATHE_TRY(Module functional, reference_module(candidate));
    LATHE_TRY(EvalResult result,
              evaluate(functional, functional.main(), inputs_, {.symbols = model_->dims}));
    return compare(results_of(std::move(result)), reference_).passed;
  }

  Result<bool> accepts(const Program& program) const {
    WeightStore weights = model_->weights();
    CompileOptions options;
    options.weight = [&](const std::string& name) { return weights.get(name); };
    LATHE_TRY(std::unique_ptr<Executable> executable, interpret(program, options));
    LATHE_TRY(CallBuffers call, CallBuffers::create(program, inputs_, model_->weights()));
    LATHE_DO(call.run(*executable));
    LATHE_TRY(std::vector<Tensor> outputs, call.outputs());
    return compare(outputs, reference_).passed;
  }

  const Model* model_;
  std::vector<Tensor> inputs_;
  Module weights_;
  Reference reference_;
};

int run_bisect(const OptArguments& arguments, Loaded& loaded, const RunOptions& run) {
  Module module = clone(loaded.model.module);
  for (const auto& [symbol, size] : loaded.model.dims) module.hints[symbol] = size;
  Result<Pipeline> pipeline = parse_pipeline(loaded.request.passes);
  if (!pipeline.ok()) return report(pipeline.error(), module.locs);
  // Every run ends in the same form: the steps that it takes are never left out.
  Result<Form> form = check_forms(*pipeline, form_of(module));
  if (!form.ok()) return report(form.error(), module.locs);
  PassContext context{.ops = builtin_registry(),
                      .target = loaded.backend->target(),
                      .overrides = loaded.request.force,
                      .numerics = loaded.request.numerics};
  std::function<Result<bool>(Unit&)> is_good = [&](Unit& unit) {
    return command_accepts(arguments.bisect, text_of(unit, *form));
  };
  if (arguments.bisect == "check") {
    Result<ResultCheck> check = ResultCheck::create(loaded.model);
    if (!check.ok()) return report(check.error(), module.locs);
    auto shared = std::make_shared<ResultCheck>(*std::move(check));
    is_good = [shared, &form](Unit& unit) { return shared->accepts(unit, *form); };
  }
  Result<BisectResult> result = bisect(module, *pipeline, run, context, is_good);
  if (!result.ok()) return report(result.error(), module.locs);
  if (result->culprit.empty()) {
    say("no step is to blame: the whole pipeline is good ({} runs)\n", result->runs);
    return kHeld;
  }
  say("{} is to blame ({} runs)\nNext: lathe opt {} --passes={} --stop-after={} --diff\n",
      result->culprit, result->runs, loaded.request.model, loaded.request.passes, result->culprit);
  return kCheckFailed;
}

RunOptions run_options(const OptArguments& arguments) {
  RunOptions options;
  options.stop_after = arguments.stop_after;
  options.skip = arguments.skip;
  options.capture = arguments.print_after              ? Capture::text
                    : arguments.diff || arguments.json ? Capture::diff
                                                       : Capture::none;
  return options;
}

int show(const OptArguments& arguments, const Lowered& lowered) {
  if (arguments.json) write_out(to_json(lowered.report) + "\n");
  if (arguments.print_after)
    for (const PassRecord& record : lowered.report.passes)
      if (record.changed == Changed::yes)
        say("// after {}#{}\n{}\n", record.pass, record.occurrence, record.after);
  if (arguments.diff || arguments.table) show_report(lowered, arguments.diff);
  bool shows_else = arguments.json || arguments.print_after || arguments.diff || arguments.table;
  std::string text = result_text(lowered, arguments.locs);
  if (!arguments.output.empty()) {
    Status written = write_output(arguments.output, text);
    if (!written.ok()) return report(written.error(), lowered.unit.module.locs);
  } else if (!shows_else) {
    write_out(text);
  }
  return kHeld;
}

// Those passes that work on programs.
Result<Pipeline> parse_program_passes(const std::string& passes, const std::string& path) {
  LATHE_TRY(Pipeline pipeline, parse_pipeline(passes));
  std::vector<std::string> fitting;
  for (const PassDef& pass : builtin_passes())
    if (pass.needs >= Form::loops) fitting.emplace_back(pass.name);
  for (const PipelineStep& step : pipeline.steps)
    if (step.pass->needs < Form::loops)
      return Diag{code::kBadForm, Loc::unknown(),
                  fmt::format("'{}' works on graphs, and '{}' is a program; on programs works "
                              "--passes={}",
                              step.pass->name, path, fmt::join(fitting, ","))};
  return pipeline;
}

int run_on_program(const OptArguments& arguments, ProgramText text) {
  if (!arguments.bisect.empty())
    return report({code::kBadForm, Loc::unknown(),
                   fmt::format("--bisect starts from a graph, and '{}' is a program", text.path)},
                  text.locs);
  Lowered lowered;
  const auto passes = arguments.model.values.find("passes");
  Result<Pipeline> pipeline = parse_program_passes(
      passes == arguments.model.values.end() ? arguments.model.request.passes : passes->second,
      text.path);
  if (!pipeline.ok()) return report(pipeline.error(), text.locs);
  lowered.pipeline = *std::move(pipeline);
  lowered.unit.program = std::move(text.program);
  lowered.unit.module.locs = std::move(text.locs);
  const Target target;  // these passes look at sizes alone
  PassContext context{.ops = builtin_registry(), .target = target};
  RunOptions options = run_options(arguments);
  options.start = Form::loops;
  Result<PipelineReport> ran = run_pipeline(lowered.unit, lowered.pipeline, options, context);
  if (!ran.ok()) return report(ran.error(), lowered.unit.module.locs);
  lowered.report = *std::move(ran);
  return show(arguments, lowered);
}

int run(const OptArguments& arguments, const std::string& command_line) {
  LocTable locs;
  Result<std::optional<ProgramText>> program =
      load_program(arguments.model.model(), arguments.model.keys(), {"passes"}, locs);
  if (!program.ok()) return report(program.error(), locs);
  if (*program) return run_on_program(arguments, **std::move(program));
  Result<Loaded> loaded = load(arguments.model, command_line, locs);
  if (!loaded.ok()) return report(loaded.error(), locs);
  const RunOptions options = run_options(arguments);
  if (!arguments.bisect.empty()) return run_bisect(arguments, *loaded, options);
  BuildFailure failure;
  Result<Lowered> lowered =
      lower(loaded->model, loaded->backend->target(), loaded->request, failure, options);
  if (!lowered.ok()) return report(lowered.error(), failure.locs, failure.reproducer);
  return show(arguments, *lowered);
}

}  // namespace

void add_opt(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("opt",
                         "Run passes on a graph, or on a program those that work on one, and "
                         "show what they did");
  auto arguments = std::make_shared<OptArguments>();
  arguments->model.request.passes = "graph";
  arguments->model.add_to(*command);
  command->add_flag("--diff", arguments->diff, "what each pass removed, added and left alone");
  command->add_flag("--table", arguments->table, "one line for each pass");
  command->add_flag("--print-after", arguments->print_after,
                    "the IR after every pass that changed it");
  command->add_flag("--json", arguments->json, "what each pass did, as JSON");
  command->add_flag("--locs", arguments->locs, "print locations with the IR");
  command->add_option("--stop-after", arguments->stop_after, "a pass, or cse#2 for its second run");
  command->add_option("--skip", arguments->skip, "passes to leave out, such as cse#2")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option(
      "--bisect", arguments->bisect,
      "find the pass to blame: a command that fails on a bad .lathe file, which holds what the "
      "passes leave, or check");
  command->add_option("-o,--output", arguments->output, "a file for the result");
  command->callback([arguments, &session] {
    session.action = [arguments, &session] { return run(*arguments, session.command_line); };
  });
}

}  // namespace lathe
