// lathe list: the words that other commands take.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/files.h"
#include "frontend/driver/program_cache.h"
#include "ir/op/all_ops.h"
#include "ir/op/import_call.h"
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

int list_targets() {
  const Result<ImportTable> table = ImportTable::create(builtin_registry());
  if (!table.ok()) return report(table.error(), LocTable());
  if (const Status checked = table->check(); !checked.ok())
    return report(checked.error(), LocTable());
  // Some are of complex numbers alone, or of float8.
  std::set<std::string> targets;
  for (const NumberKind numbers : kNumberKinds)
    for (std::string& target : table->targets(numbers)) targets.insert(std::move(target));
  for (const std::string& target : targets) say("{}\n", target);
  say("{}\n", plural(static_cast<int64_t>(targets.size()), "ATen operator"));
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

// Kept programs with their keys, a part a line: two of them can be compared by any diff.
int list_programs() {
  const bool color = color_on_stdout();
  const std::string folder = program_cache_folder();
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (at->path().extension() == ".program") files.push_back(at->path());
  std::sort(files.begin(), files.end());
  int64_t total = 0;
  for (const std::filesystem::path& file : files) {
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(file, error));
    total += error ? 0 : bytes;
    say("{}  {}\n", styled(file.filename().string(), Style::accent, color), format_bytes(bytes));
    const Result<CacheKey> key = read_cached_key(file);
    if (!key.ok()) {
      say("  {}\n", key.error().message);
      continue;
    }
    for (const auto& [part, value] : *key) say("  {}: {}\n", part, value);
  }
  say("{} in {}, {} of at most {}\n", plural(static_cast<int64_t>(files.size()), "program"), folder,
      format_bytes(total), format_bytes(kMostCachedBytes));
  return kHeld;
}

}  // namespace

void add_list(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "list", "List passes, ops, ATen operators, the zoo's graphs, or kept programs");
  auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "passes, ops, targets (ATen operators), zoo or programs")
      ->required()
      ->check(CLI::IsMember({"passes", "ops", "targets", "zoo", "programs"}));
  command->callback([what, &session] {
    session.action = [what] {
      if (*what == "passes") return list_passes();
      if (*what == "programs") return list_programs();
      if (*what == "targets") return list_targets();
      return *what == "ops" ? list_ops() : list_zoo();
    };
  });
}

}  // namespace lathe
