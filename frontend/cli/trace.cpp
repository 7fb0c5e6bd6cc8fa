// lathe trace: which program serves each call of a sequence of sizes, before anything runs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "frontend/artifacts/trace.h"
#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/model_flags.h"
#include "frontend/cli/terminal.h"

namespace lathe {

namespace {

struct TraceArguments {
  ModelFlags model;
  std::string shapes;
  bool all = false;
  bool json = false;
};

constexpr size_t kTracedLines = 24;  // without --all
constexpr size_t kHotSizes = 3;
constexpr int kReasonWidth = 76;

std::string spell_sizes(const Trace& trace, const std::vector<int64_t>& sizes) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < sizes.size(); ++i)
    texts.push_back(fmt::format("{}={}", trace.symbols[i], sizes[i]));
  return fmt::format("{}", fmt::join(texts, " "));
}

// A line for each call, or of calls in a row that one program serves; reasons below what compiles.
std::string trace_table(const Trace& trace, bool all) {
  Table table({Align::right, Align::left, Align::left});
  table.add({"call", "sizes", "served by"});
  size_t lines = 0;
  for (size_t i = 0; i < trace.calls.size(); ++i) {
    const TracedCall& call = trace.calls[i];
    if (!call.compiles && call.artifact && !all && ++lines > kTracedLines) continue;
    const std::string who = !call.artifact  ? "refused"
                            : call.compiles ? fmt::format("{}, compiled now", *call.artifact)
                                            : fmt::format("{}", *call.artifact);
    table.add({fmt::format("{}", i), spell_sizes(trace, call.sizes), who});
    if (!call.reason.empty()) {
      std::string reason = wrap(call.reason, kReasonWidth, 6);
      while (!reason.empty() && reason.back() == '\n') reason.pop_back();
      table.add_line(reason);
    }
  }
  std::string text = table.str(2);
  if (lines > kTracedLines)
    text += fmt::format("  {} more are served by what is there; --all shows them\n",
                        lines - kTracedLines);
  return text;
}

int run_trace(const TraceArguments& arguments, const std::string& command_line) {
  LocTable locs;
  Result<Loaded> loaded = load(arguments.model, command_line, locs);
  if (!loaded.ok()) return report(loaded.error(), locs);
  Result<std::vector<std::vector<int64_t>>> calls =
      read_trace(arguments.shapes, loaded->model, locs);
  if (!calls.ok()) return report(calls.error(), locs);
  Result<Trace> traced = trace(loaded->model, loaded->backend->target(), loaded->request, *calls);
  if (!traced.ok()) return report(traced.error(), loaded->model.module.locs);
  if (arguments.json) {
    write_out(to_json(*traced) + "\n");
    return kHeld;
  }
  write_out(trace_table(*traced, arguments.all));
  say("{} compile {}; {} there at the end\n",
      plural(static_cast<int64_t>(traced->calls.size()), "call"),
      plural(traced->num_compiled, "program"), traced->artifacts.size());
  for (const std::string& hint : hot_sizes(*traced, kHotSizes))
    say("Next: --specialize_on='{}'     these sizes come often\n", hint);
  return kHeld;
}

}  // namespace

void add_trace(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "trace",
      "Say which program serves each call of a sequence of sizes, and which calls compile");
  auto arguments = std::make_shared<TraceArguments>();
  arguments->model.add_to(*command);
  command->add_option("shapes", arguments->shapes, "a JSON array of calls: [{\"s0\": 8}, ...]")
      ->required();
  command->add_flag("--all", arguments->all, "every call, nothing cut");
  command->add_flag("--json", arguments->json, "every call and program as JSON");
  command->callback([arguments, &session] {
    session.action = [arguments, &session] { return run_trace(*arguments, session.command_line); };
  });
}

}  // namespace lathe
