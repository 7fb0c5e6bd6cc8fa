// lathe run: an experiment, from a config file or from flags.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "experiments/runner/study.h"
#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/program.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/files.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

struct RunArguments {
  std::string config;
  std::map<std::string, std::vector<std::string>> flags;
  std::string command_line;
  std::string json;
  std::string save_outputs;
  std::optional<uint64_t> max_steps;  // of a program's text
};

// "'fusion on' is 2.4x faster than 'fusion off' (1.9x to 2.8x)": geometric mean over the models.
struct Comparison {
  double mean = 1, low = 1, high = 1;
};

const StudyRow* find_row(const Study& study, const StudyRow& like, const std::string& variant) {
  for (const StudyRow& row : study.rows)
    if (row.model == like.model && row.target == like.target && row.threads == like.threads &&
        row.variant == variant)
      return &row;
  return nullptr;
}

// How much faster a row is than the first variant's; 0 when there is nothing to compare with.
double gained(const Study& study, const StudyRow& row) {
  const StudyRow* base = find_row(study, row, study.config.variants.front().name);
  if (base == nullptr || base == &row || row.samples.median() <= 0) return 0;
  return base->samples.median() / row.samples.median();
}

Comparison compare_variant(const Study& study, const std::string& variant) {
  Comparison result{.mean = 0, .low = 1e300, .high = 0};
  int count = 0;
  for (const StudyRow& row : study.rows) {
    double factor = row.variant == variant ? gained(study, row) : 0;
    if (factor <= 0) continue;
    result.mean += std::log(factor);
    result.low = std::min(result.low, factor);
    result.high = std::max(result.high, factor);
    ++count;
  }
  if (count == 0) return {};
  result.mean = std::exp(result.mean / count);
  return result;
}

std::string times(double factor) { return fmt::format("{:.{}f}x", factor, factor < 9.95 ? 1 : 0); }

std::string answer(const Study& study) {
  const std::vector<Variant>& variants = study.config.variants;
  std::string text;
  for (size_t i = 1; i < variants.size(); ++i) {
    Comparison c = compare_variant(study, variants[i].name);
    bool is_faster = c.mean >= 1;
    double mean = is_faster ? c.mean : 1 / c.mean;
    text +=
        fmt::format("'{}' is {} {} than '{}' ({} to {}).\n", variants[i].name, times(mean),
                    is_faster ? "faster" : "slower", variants[0].name, times(c.low), times(c.high));
  }
  return text;
}

// Half the distance between the 10th and the 90th percentile.
std::string spread_of(const Samples& samples) {
  if (samples.milliseconds.size() < 2) return "";
  double half = (samples.quantile(0.9) - samples.quantile(0.1)) / 2;
  return format_spread(half, samples.median());
}

std::vector<std::string> cells(const Study& study, const StudyRow& row, bool color) {
  double factor = gained(study, row);
  std::string error = row.agreement ? format_error(row.agreement->max_abs_error) : "";
  std::string status =
      styled(row.status(), row.passed() ? Style::good : Style::bad, color && row.agreement);
  bool is_compiled = row.target != "interp";
  return {"  " + row.variant,
          is_compiled ? format_ms(row.compile_ms) : "",
          styled(format_ms(row.samples.median()), Style::bold, color),
          spread_of(row.samples),
          factor > 0 ? times(factor) : "",
          is_compiled ? format_count(row.kernels) : "",
          is_compiled ? format_bytes(row.peak_bytes()) : "",
          is_compiled ? fmt::format("{:.1f}", row.gflops()) : "",
          error,
          status};
}

std::string group_name(const StudyRow& row) {
  return fmt::format("{}, {}, {}", row.model, row.target, plural(row.threads, "thread"));
}

std::string rows_table(const Study& study, bool color) {
  constexpr Align L = Align::left, R = Align::right;
  Table table({L, R, R, R, R, R, R, R, R, L});
  table.add({"", "compile", "median", "spread", study.config.variants.size() > 1 ? "gained" : "",
             "kernels", "peak", "GFLOP/s", "error", ""});
  std::string group;
  for (const StudyRow& row : study.rows) {
    if (group_name(row) != group) table.add_line(styled(group_name(row), Style::accent, color));
    group = group_name(row);
    table.add(cells(study, row, color));
  }
  return table.str();
}

// Why it is faster, in kernels and bytes: the last variant against the first, at one thread count.
std::string reasons(const Study& study) {
  std::string text;
  const std::vector<Variant>& variants = study.config.variants;
  if (variants.size() < 2) return text;
  for (const StudyRow& row : study.rows) {
    bool is_last = row.variant == variants.back().name && row.threads == study.config.threads[0];
    const StudyRow* base = is_last ? find_row(study, row, variants.front().name) : nullptr;
    if (base == nullptr) continue;
    text += fmt::format("  {}: {} -> {}, {} -> {} moved between kernels\n", row.model,
                        base->kernels, plural(row.kernels, "kernel"),
                        format_bytes(base->traffic_bytes), format_bytes(row.traffic_bytes));
  }
  return text.empty() ? text : "Why:\n" + text;
}

std::string tunings(const Study& study) {
  std::string text;
  for (const StudyRow& row : study.rows)
    if (!row.tuning.empty())
      text += wrap(fmt::format("{}, {}: {}", group_name(row), row.variant, row.tuning),
                   output_width(), 2);
  return text.empty() ? text : "Tuned:\n" + text;
}

std::string verdict(const Study& study) {
  double worst = 0;
  int64_t wrong = 0, checked = 0;
  for (const StudyRow& row : study.rows) {
    if (!row.agreement) continue;
    ++checked;
    wrong += row.passed() ? 0 : 1;
    worst = std::max(worst, row.agreement->max_abs_error);
  }
  if (checked == 0) return "Nothing was checked: --check=none.\n";
  if (wrong == 0)
    return fmt::format("Every result agrees with the interpreter (largest error {}).\n",
                       format_error(worst));
  std::string text = fmt::format("{} of {} do not agree with the interpreter:\n", wrong,
                                 plural(checked, "result"));
  for (const StudyRow& row : study.rows)
    if (!row.passed())
      text += wrap(fmt::format("{}, {}: {}", group_name(row), row.variant, row.agreement->why),
                   output_width(), 2);
  return text;
}

// Each with what it shows, below it where a line has no room for both.
std::string next_steps(const ExperimentConfig& config, int width) {
  std::string text;
  size_t longest = 0;
  for (const NextStep& step : config.next) longest = std::max(longest, step.command.size());
  for (const NextStep& step : config.next) {
    bool fits = longest + step.says.size() + 6 <= static_cast<size_t>(width);
    text += fits ? fmt::format("  {:<{}}  {}\n", step.command, longest, step.says)
                 : fmt::format("  {}\n      {}\n", step.command, step.says);
  }
  return text.empty() ? text : "Next:\n" + text;
}

void show(const Study& study, const std::string& results_path) {
  bool color = color_on_stdout();
  int width = output_width();
  const ExperimentConfig& config = study.config;
  std::string title = config.title.empty() ? config.name : config.name + ": " + config.title;
  std::string isa = study.rows.empty() ? "" : study.rows.front().isa;
  std::string machine = fmt::format("{}{}{}, {}", study.machine.cpu, isa.empty() ? "" : ", ", isa,
                                    study.rows.empty() ? "" : study.rows.front().dtype);
  say(spread(styled(title, Style::bold, color), machine, width));
  // What is wrong comes before what is fast.
  std::string first = study.passed() ? answer(study) : verdict(study);
  say("{}\n{}\n", styled(first, study.passed() ? Style::bold : Style::bad, color),
      rows_table(study, color));
  if (study.passed()) say(verdict(study));
  if (const std::string tf32 = study.about_tf32(); !tf32.empty()) say(wrap(tf32, width, 0));
  say(reasons(study));
  say(tunings(study));
  if (!config.about.empty()) say(wrap(config.about, width, 0));
  say("\nResults: {}\n{}", results_path, next_steps(config, width));
}

Result<ExperimentConfig> make_config(const RunArguments& arguments, LocTable& locs) {
  ExperimentConfig config;
  if (!arguments.config.empty()) {
    LATHE_TRY(std::string text, read_file(arguments.config, 1 << 20));
    LATHE_TRY(config, read_config(text, arguments.config, locs));
  }
  std::vector<Flag> flags;
  for (const auto& [key, values] : arguments.flags)
    for (const std::string& value : values) flags.push_back({key, value});
  LATHE_DO(apply_config_flags(flags, arguments.command_line, locs, config));
  if (config.models.empty())
    return Diag{code::kBadValue, Loc::unknown(),
                "nothing to run: give a config file, or --model with a path or a graph's name"};
  if (config.name.empty()) config.name = to_file_name(config.models.front().name);
  return config;
}

// The program that the flags name, if they name one.
Result<std::optional<ProgramText>> find_program(const RunArguments& arguments,
                                                const ExperimentConfig& config, LocTable& locs) {
  std::optional<ProgramText> program;
  if (arguments.config.empty() && config.models.size() == 1) {
    std::vector<std::string> given;
    for (const auto& [key, values] : arguments.flags)
      if (!values.empty()) given.push_back(key);
    if (!arguments.json.empty()) given.push_back("json");
    LATHE_TRY(program,
              load_program(config.models[0].source, given, {"inputs", "weights", "dims"}, locs));
  }
  if (!program && arguments.max_steps)
    return Diag{code::kBadValue, Loc::unknown(), "--max-steps is of a program's text alone"};
  return program;
}

int run(RunArguments arguments) {
  LocTable locs;
  if (is_text_path(arguments.config)) {  // no experiment: what it would be about
    arguments.flags["model"].push_back(arguments.config);
    arguments.config.clear();
  }
  Result<ExperimentConfig> config = make_config(arguments, locs);
  if (!config.ok()) return report(config.error(), locs);
  Result<std::optional<ProgramText>> program = find_program(arguments, *config, locs);
  if (!program.ok()) return report(program.error(), locs);
  if (*program) {
    ProgramTextOptions options{.inputs = config->inputs, .dims = config->request.dims};
    if (config->request.weights.is_random) options.weights = config->request.weights.seed;
    if (arguments.max_steps) options.limits.max_steps = *arguments.max_steps;
    return run_program(**program, options, arguments.save_outputs);
  }
  std::string path =
      arguments.json.empty() ? fmt::format("results/{}.json", config->name) : arguments.json;
  BuildFailure failure;
  Progress progress;
  StudyOptions options;
  options.folder = std::filesystem::path(arguments.config).parent_path().string();
  options.progress = [&](double share, std::string_view what) {
    progress.show(share, what);
    return true;
  };
  options.keep_outputs = !arguments.save_outputs.empty();
  Result<Study> study = run_study(*std::move(config), options, locs, failure);
  progress.erase();
  if (!study.ok()) return report(study.error(), failure.locs, failure.reproducer);
  Status written = write_output(path, to_json(*study));
  if (!written.ok()) return report(written.error(), locs);
  if (!arguments.save_outputs.empty()) {
    written = save_tensors(arguments.save_outputs, study->outputs);
    if (!written.ok()) return report(written.error(), locs);
  }
  show(*study, path);
  return study->passed() ? kHeld : kCheckFailed;
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "run",
      "Measure and check an experiment. A program's text runs in the interpreter alone, which "
      "checks every access: nothing proves its indices");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("config", arguments->config,
                      "an experiment, as experiments/schema says, or a .lathe text to run");
  for (const FlagRow& flag : config_flags())
    command->add_option("--" + flag.key, arguments->flags[flag.key], flag.help)
        ->allow_extra_args(false);
  command->add_option("--json", arguments->json, "where the results go: results/NAME.json");
  command->add_option("--save-outputs", arguments->save_outputs,
                      "an .npz of the first row's outputs, named 0, 1, ...");
  command->add_option("--max-steps", arguments->max_steps,
                      "of a program's text: what the interpreter may execute at most");
  command->callback([arguments, &session] {
    arguments->command_line = session.command_line;
    session.action = [arguments] { return run(*arguments); };
  });
}

}  // namespace lathe
