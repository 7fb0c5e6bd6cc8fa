// lathe opt: passes on a .lathe text or a model, step by step.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/model_flags.h"
#include "frontend/cli/places.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/check.h"
#include "frontend/driver/files.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"

namespace lathe {

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
      fmt::print("{}\n", line);
    } else {
      fmt::print("{}", spread(line, styled(place, Style::dim, color), output_width()));
    }
  }
  if (changes.size() > kMaxChanges)
    fmt::print("  {} and {} more\n", sign, changes.size() - kMaxChanges);
}

void show_refusals(const std::vector<Refusal>& refusals, const LocTable& locs) {
  std::map<std::string, std::pair<int64_t, Loc>> counted;
  for (const Refusal& refusal : refusals) {
    auto [entry, is_new] = counted.try_emplace(refusal.message, 0, refusal.loc);
    ++entry->second.first;
  }
  for (const auto& [message, count] : counted) {
    std::string place = describe_place(locs, count.second);
    fmt::print("  left alone: {}{}{}\n", message, place.empty() ? "" : "  " + place,
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
    fmt::print("{}", record.changed == Changed::yes ? line : styled(line, Style::dim, color));
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

// Whether the command succeeds on the graph's text. What a program computes has no text that reads
// back, so bisection stops at the graph.
Result<bool> command_accepts(const std::string& command, const Unit& unit) {
  std::string path = fmt::format("/tmp/lathe-bisect-{}.lathe", getpid());
  LATHE_DO(write_output(path, print(unit.module)));
  int status = std::system(fmt::format("{} '{}'", command, path).c_str());
  unlink(path.c_str());
  return status == 0;
}

// Whether the interpreter gives the same results as for the imported graph.
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
  Result<bool> accepts(const Unit& unit) const {
    Module module = clone(unit.module);
    for (const auto& [name, weight] : weights_.weights) module.weights[name] = weight;
    // Bisection may have left out what makes the graph functional.
    Model candidate;
    candidate.module = std::move(module);
    LATHE_TRY(Module functional, reference_module(candidate));
    LATHE_TRY(EvalResult result,
              evaluate(functional, functional.main(), inputs_, {.symbols = model_->dims}));
    return compare(results_of(functional.main(), std::move(result)), reference_).passed;
  }

 private:
  explicit ResultCheck(const Model& model) : model_(&model) {}
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
  auto& steps = pipeline->steps;
  while (!steps.empty() && steps.back().pass->leaves >= Form::loops) steps.pop_back();
  PassContext context{.ops = builtin_registry(),
                      .target = loaded.backend->target(),
                      .numerics = loaded.request.numerics};
  std::function<Result<bool>(Unit&)> is_good = [&](Unit& unit) {
    return command_accepts(arguments.bisect, unit);
  };
  if (arguments.bisect == "check") {
    Result<ResultCheck> check = ResultCheck::create(loaded.model);
    if (!check.ok()) return report(check.error(), module.locs);
    auto shared = std::make_shared<ResultCheck>(*std::move(check));
    is_good = [shared](Unit& unit) { return shared->accepts(unit); };
  }
  Result<BisectResult> result = bisect(module, *pipeline, run, context, is_good);
  if (!result.ok()) return report(result.error(), module.locs);
  if (result->culprit.empty()) {
    fmt::print("no step is to blame: the whole pipeline is good ({} runs)\n", result->runs);
    return kHeld;
  }
  fmt::print("{} is to blame ({} runs)\nNext: lathe opt {} --passes={} --stop-after={} --diff\n",
             result->culprit, result->runs, loaded.request.model, loaded.request.passes,
             result->culprit);
  return kCheckFailed;
}

int run(const OptArguments& arguments, const std::string& command_line) {
  LocTable locs;
  Result<Loaded> loaded = load(arguments.model, command_line, locs);
  if (!loaded.ok()) return report(loaded.error(), locs);
  RunOptions options;
  options.stop_after = arguments.stop_after;
  options.skip = arguments.skip;
  options.capture = arguments.print_after              ? Capture::text
                    : arguments.diff || arguments.json ? Capture::diff
                                                       : Capture::none;
  if (!arguments.bisect.empty()) return run_bisect(arguments, *loaded, options);
  BuildFailure failure;
  Result<Lowered> lowered =
      lower(loaded->model, loaded->backend->target(), loaded->request, failure, options);
  if (!lowered.ok()) return report(lowered.error(), failure.locs, failure.reproducer);
  if (arguments.json) fmt::print("{}\n", to_json(lowered->report));
  if (arguments.print_after)
    for (const PassRecord& record : lowered->report.passes)
      if (record.changed == Changed::yes)
        fmt::print("// after {}#{}\n{}\n", record.pass, record.occurrence, record.after);
  if (arguments.diff || arguments.table) show_report(*lowered, arguments.diff);
  bool shows_else = arguments.json || arguments.print_after || arguments.diff || arguments.table;
  std::string text = result_text(*lowered, arguments.locs);
  if (!arguments.output.empty()) {
    Status written = write_output(arguments.output, text);
    if (!written.ok()) return report(written.error(), locs);
  } else if (!shows_else) {
    fmt::print("{}", text);
  }
  return kHeld;
}

}  // namespace

void add_opt(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("opt", "Run passes on a graph and show what they did");
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
      "find the pass to blame: a command that fails on a bad .lathe file, or check");
  command->add_option("-o,--output", arguments->output, "a file for the result");
  command->callback([arguments, &session] {
    session.action = [arguments, &session] { return run(*arguments, session.command_line); };
  });
}

}  // namespace lathe
