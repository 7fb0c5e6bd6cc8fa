// lathe explain: what a model is, which kernels it becomes, from which lines, and how long each
// takes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "frontend/bundle/bundle_files.h"
#include "frontend/cli/bundle_report.h"
#include "frontend/cli/choices_table.h"
#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/formulas_table.h"
#include "frontend/cli/guards_table.h"
#include "frontend/cli/model_flags.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/launches.h"
#include "frontend/driver/places.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

struct ExplainArguments {
  ModelFlags model;
  bool all = false;
  bool choices = false;
  bool guards = false;
  bool json = false;
  std::string graph = {};  // of a bundle
};

// Launches that do the same for different layers: one line.
struct ExplainedGroup {
  std::string label;
  int64_t count = 0;
  double seconds = 0;
  int64_t flops = 0;
  int64_t bytes = 0;
  std::vector<size_t> steps = {};
  Source source;
  std::string refusal;
};

// Without --all.
constexpr size_t kLines = 16;
constexpr size_t kLabelRoom = 22;
constexpr size_t kNamesRoom = 16;
constexpr int kTimedRuns = 5;

// Seconds of each step: the least of some runs.
Result<std::vector<double>> time_steps(const Model& model, Build& made) {
  LATHE_TRY(std::vector<Tensor> inputs, random_inputs(model, 0));
  LATHE_TRY(CallBuffers call, CallBuffers::create(made.program(), inputs, model.weights()));
  made.executable->set_timing(true);
  std::vector<double> least;
  for (int i = 0; i < kTimedRuns; ++i) {
    LATHE_DO(call.run(*made.executable));
    std::vector<double> seconds = made.executable->step_seconds();
    if (least.empty()) least = seconds;
    for (size_t s = 0; s < least.size() && s < seconds.size(); ++s)
      least[s] = std::min(least[s], seconds[s]);
  }
  made.executable->set_timing(false);
  return least;
}

// Why the ops of a launch did not join others: the first refusal that speaks of one of its lines.
std::string refusal_of(const Launch& launch, const PipelineReport& report, const LocTable& locs) {
  for (const PassRecord& record : report.passes)
    for (const Refusal& refusal : record.refusals)
      for (Loc origin : launch.origins)
        if (!origin.is_unknown() && locs.origin(origin) == locs.origin(refusal.loc))
          return refusal.message;
  return "";
}

std::vector<ExplainedGroup> group_launches(const Build& made, const std::vector<double>& seconds) {
  const LocTable& locs = made.lowered.unit.module.locs;
  std::vector<ExplainedGroup> groups;
  const std::vector<Launch>& steps = made.program().steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Source& source = made.lowered.sources[i];
    auto same = std::find_if(groups.begin(), groups.end(), [&](const ExplainedGroup& g) {
      return g.label == steps[i].label && g.source.names == source.names;
    });
    if (same == groups.end()) {
      groups.push_back({.label = steps[i].label, .source = source});
      same = groups.end() - 1;
      same->refusal = refusal_of(steps[i], made.lowered.report, locs);
    }
    ++same->count;
    same->flops += steps[i].flops.value();
    same->bytes += steps[i].bytes.value();
    same->steps.push_back(i);
    same->seconds += i < seconds.size() ? seconds[i] : 0;
  }
  std::stable_sort(
      groups.begin(), groups.end(),
      [](const ExplainedGroup& a, const ExplainedGroup& b) { return a.seconds > b.seconds; });
  return groups;
}

std::string label_of(const ExplainedGroup& group, bool all) {
  const std::string count = group.count > 1 ? fmt::format(" x{}", group.count) : "";
  return cut(group.label, all ? kUncut : kLabelRoom) + count;
}

std::string formulas_text(const Build& made, const std::vector<ExplainedGroup>& groups,
                          const Model& model, bool all) {
  std::vector<std::vector<size_t>> steps;
  std::vector<std::string> labels;
  for (const ExplainedGroup& group : groups) {
    steps.push_back(group.steps);
    labels.push_back(label_of(group, all));
  }
  return formulas_table(formulas_of(*made.symbolic, steps, model.dims), labels,
                        made.executable->stats().arena_bytes, all);
}

std::string kernels_table(const std::vector<ExplainedGroup>& groups, bool all) {
  double total = 0;
  for (const ExplainedGroup& group : groups) total += group.seconds;
  Table table({Align::left, Align::left, Align::left, Align::right, Align::right});
  table.add({"kernel", "from", "", "time", "GFLOP/s"});
  for (size_t i = 0; i < groups.size() && (all || i < kLines); ++i) {
    const ExplainedGroup& g = groups[i];
    std::string rate = g.seconds > 0 && g.flops > 0
                           ? fmt::format("{:.1f}", static_cast<double>(g.flops) / g.seconds / 1e9)
                           : "";
    table.add({label_of(g, all), cut(g.source.names, all ? kUncut : kNamesRoom), g.source.place,
               total > 0 ? format_percent(g.seconds / total) : "", rate});
    if (!g.refusal.empty()) table.add_line("    refused to join: " + g.refusal);
  }
  std::string text = table.str(2);
  if (!all && groups.size() > kLines)
    text += fmt::format("  {} more lines; --all shows every kernel\n", groups.size() - kLines);
  return text;
}

std::string dims_text(const Model& model) {
  std::string text;
  for (const auto& [symbol, range] : model.module.dims) {
    std::string low = range.min ? fmt::format("{}", *range.min) : "0";
    std::string high = range.max ? fmt::format("{}", *range.max) : "any";
    auto size = model.dims.find(symbol);
    text += fmt::format("{}{} in [{}, {}]{}", text.empty() ? "" : ", ", symbol, low, high,
                        size == model.dims.end() ? "" : fmt::format(" (here {})", size->second));
  }
  return text.empty() ? "no dynamic dims" : "dims: " + text;
}

// What sizes must satisfy beside their ranges, and what of it nobody checks.
std::string guards_text(const Model& model) {
  std::vector<std::string> texts;
  for (const Guard& guard : model.module.guards) texts.push_back(to_string(guard));
  if (model.signature)
    for (const std::string& text : model.signature->unread_guards)
      texts.push_back(fmt::format("{} (not checked)", text));
  const size_t shown = std::min<size_t>(texts.size(), 8), more = texts.size() - shown;
  return fmt::format("{}{}",
                     fmt::join(texts.begin(), texts.begin() + static_cast<ptrdiff_t>(shown), "; "),
                     more > 0 ? fmt::format("; and {} more", more) : "");
}

std::string values_text(const std::vector<TensorType>& types) {
  std::string text;
  for (size_t i = 0; i < types.size() && i < 4; ++i)
    text += (i == 0 ? "" : ", ") + to_string(types[i]);
  return types.size() > 4 ? text + fmt::format(", and {} more", types.size() - 4) : text;
}

void show(const Model& model, const Build& made, const std::vector<double>& seconds,
          const std::string& table) {
  bool color = color_on_stdout();
  std::vector<TensorType> takes, gives;
  for (const auto& param : model.module.main().params) takes.push_back(param->types[0]);
  for (Value value : model.module.main().outputs)
    if (value) gives.push_back(value.type());
  double total = 0;
  for (double s : seconds) total += s;
  const Model::WeightTotals weights = model.weight_totals();
  say("{}   {}, {}, {} weights ({})\n", styled(model.path, Style::bold, color), model.producer,
      plural(model.num_nodes(), "node"), format_large(static_cast<double>(weights.elements)),
      format_bytes(weights.bytes));
  Table facts({Align::left, Align::left});
  facts.add(
      {"captured",
       fmt::format("{}; {}", plural(static_cast<int64_t>(model.module.graphs.size()), "graph"),
                   dims_text(model))});
  if (const std::string guards = guards_text(model); !guards.empty())
    facts.add({"only for", guards});
  facts.add({"takes", values_text(takes)});
  facts.add({"gives", values_text(gives)});
  facts.add({"becomes", fmt::format("{}, {}FLOP, {} live at most beside {} of packed weights",
                                    plural(made.program().num_kernels(), "kernel"),
                                    format_large(static_cast<double>(made.flops())),
                                    format_bytes(made.executable->stats().arena_bytes),
                                    format_bytes(made.executable->stats().persistent_bytes))});
  facts.add({"time", fmt::format("{}, compiled in {}", format_ms(total * 1000),
                                 format_ms(made.compile_ms))});
  if (!made.tuning.empty()) facts.add({"tuned", made.tuning});
  say("{}\n{}", facts.str(2), table);
}

int show_guards(Loaded& loaded, bool as_json) {
  BuildFailure failure;
  const Result<GuardReport> report_of =
      report_guards(loaded.model, *loaded.backend, loaded.request, failure);
  if (!report_of.ok()) return report(report_of.error(), failure.locs, failure.reproducer);
  if (as_json) {
    write_out(to_json(*report_of, lines_of(*report_of)) + "\n");
    return kHeld;
  }
  say("{}\n{}", styled(loaded.model.path, Style::bold, color_on_stdout()),
      guards_table(*report_of));
  return kHeld;
}

// A bundle is shown, not compiled, so that options of compilation are a mistake.
int explain_bundle(const ExplainArguments& arguments) {
  std::vector<std::string> others;
  for (const std::string& key : arguments.model.keys())
    if (key != "model") others.push_back("--" + key);
  if (arguments.choices) others.push_back("--choices");
  if (!others.empty())
    return report({code::kBadValue, Loc::unknown(),
                   fmt::format("{} is for models; of a bundle explain takes --graph, --guards, "
                               "--json and --all",
                               fmt::join(others, ", "))},
                  LocTable());
  return show_bundle(
      {arguments.model.model(), arguments.graph, arguments.guards, arguments.json, arguments.all});
}

int run(const ExplainArguments& arguments, const std::string& command_line) {
  LocTable locs;
  const std::string path = arguments.model.model();
  if (bundle::is_bundle(path)) return explain_bundle(arguments);
  if (!arguments.graph.empty())
    return report({code::kBadValue, Loc::unknown(),
                   fmt::format("--graph is for bundles of lathe.capture, and '{}' is none", path)},
                  locs);
  Result<Loaded> loaded = load(arguments.model, command_line, locs);
  if (!loaded.ok()) return report(loaded.error(), locs);
  if (arguments.guards) return show_guards(*loaded, arguments.json);
  BuildFailure failure;
  Result<Build> made = build(loaded->model, *loaded->backend, loaded->request, failure);
  if (!made.ok()) return report(made.error(), failure.locs, failure.reproducer);
  Result<std::vector<double>> seconds = time_steps(loaded->model, *made);
  if (!seconds.ok()) return report(seconds.error(), made->lowered.unit.module.locs);
  const std::vector<const KernelChoice*> choices = choices_of(made->lowered.report);
  const std::vector<LaunchRow> rows =
      describe_launches(made->program(), choices, loaded->backend->target(), *seconds);
  if (arguments.json) {
    write_out(to_json(rows, made->symbolic ? &*made->symbolic : nullptr) + "\n");
    return kHeld;
  }
  const std::vector<ExplainedGroup> groups = group_launches(*made, *seconds);
  std::string table =
      arguments.choices ? choices_table(rows, arguments.all) : kernels_table(groups, arguments.all);
  if (made->symbolic) table += "\n" + formulas_text(*made, groups, loaded->model, arguments.all);
  show(loaded->model, *made, *seconds, table);
  say("Next: ./lathe opt {} --passes=graph --diff     what each pass changed\n",
      loaded->request.model);
  return kHeld;
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "explain",
      "Say what a model becomes, kernel by kernel, or what a bundle of lathe.capture has");
  auto arguments = std::make_shared<ExplainArguments>();
  arguments->model.add_to(*command);
  command->add_flag("--all", arguments->all, "every kernel, nothing cut");
  command->add_flag("--choices", arguments->choices,
                    "of each launch its kind of kernel, and what the others would have taken");
  command->add_flag("--json", arguments->json,
                    "every launch with its choices, or with --guards every guard, as JSON");
  command->add_option("--graph", arguments->graph,
                      "of a bundle of lathe.capture: one graph's Python, inputs and guards");
  command->add_flag(
      "--guards", arguments->guards,
      "what symbolic sizes must satisfy, which line, pass and cause says so, and what "
      "checking and dropping it costs; of a bundle, the guards as PyTorch prints them");
  command->callback([arguments, &session] {
    session.action = [arguments, &session] { return run(*arguments, session.command_line); };
  });
}

}  // namespace lathe
