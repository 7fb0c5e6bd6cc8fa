// lathe list: the words that other commands take.
#include <fmt/format.h>

#include <memory>

#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/files.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

namespace {

int list_passes() {
  bool color = color_on_stdout();
  Table passes({Align::left, Align::left});
  for (const PassDef& pass : builtin_passes()) {
    passes.add({styled(pass.name, Style::accent, color), pass.summary});
    for (const PassOption& option : pass.options)
      passes.add({"", fmt::format("  {}={}  {}", option.name, option.default_value, option.doc)});
  }
  say("{}\nPipelines:\n", passes.str());
  for (const NamedPipeline& pipeline : pipelines()) {
    say("{}: {}\n", styled(pipeline.name, Style::accent, color), pipeline.summary);
    Table steps({Align::left, Align::left});
    for (const StepReason& step : pipeline.steps) steps.add({step.step, step.why});
    say(steps.str(2));
  }
  say("Write pipelines as text: --passes=\"default,-fuse_pointwise\"\n");
  return kHeld;
}

int list_ops() {
  Table ops({Align::left, Align::left});
  for (const OpDef& op : builtin_registry().rows())
    ops.add({styled(op.name, Style::accent, color_on_stdout()), op.summary});
  say("{}{}\n", ops.str(), plural(static_cast<int64_t>(builtin_registry().rows().size()), "op"));
  return kHeld;
}

int list_zoo() {
  std::vector<std::string> names = graph_names();
  if (names.empty()) {
    complain("no graphs found; run inside Lathe's tree, or set LATHE_ROOT\n");
    return kWrongInput;
  }
  for (const std::string& name : names) say("{}\n", name);
  say("{}; none has weights: lathe run --model {} --weights random:0\n",
      plural(static_cast<int64_t>(names.size()), "graph"), names.front());
  return kHeld;
}

}  // namespace

void add_list(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("list", "List passes, ops or the zoo's graphs");
  auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "passes, ops or zoo")
      ->required()
      ->check(CLI::IsMember({"passes", "ops", "zoo"}));
  command->callback([what, &session] {
    session.action = [what] {
      if (*what == "passes") return list_passes();
      return *what == "ops" ? list_ops() : list_zoo();
    };
  });
}

}  // namespace lathe
