// lathe doctor: what this machine offers, and what is missing.
#include <fmt/format.h>

#include "backends/cuda/device/backend.h"
#include "backends/wasm/node/backend.h"
#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/files.h"
#include "frontend/driver/machine.h"
#include "ir/op/all_ops.h"
#include "ir/target/target.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

namespace {

// "ok" or the reason why a target cannot be used.
std::string state_of(const std::string& target, const std::string& isa, bool color) {
  Result<std::unique_ptr<Backend>> backend = make_backend(target, isa);
  Status runs = target == "wasm" ? check_wasm(isa) : target == "cuda" ? check_cuda() : Status(Ok{});
  if (backend.ok() && runs.ok()) return styled("ok", Style::good, color);
  const Diag& why = backend.ok() ? runs.error() : backend.error();
  return styled("no", Style::bad, color) + "  " + why.message;
}

int run() {
  bool color = color_on_stdout();
  Machine machine = this_machine();
  Result<std::unique_ptr<Backend>> best = make_backend("cpu", "");
  say("{}\n", best.ok() ? fmt::format("Lathe runs here: cpu ({})", (*best)->target().isa)
                        : "Lathe cannot run models here: " + best.error().message);
  Table table({Align::left, Align::left});
  table.add({"processor", fmt::format("{}, {}", machine.cpu, plural(machine.cores, "core"))});
  table.add({"memory", format_bytes(machine.memory_bytes)});
  table.add({"system", machine.system});
  for (const std::string& isa : target_names()) {
    const std::string& target = find_target(isa)->name;
    table.add({target + ", " + isa, state_of(target, isa, color)});
  }
  for (const CudaPart& part : cuda_parts())
    table.add({"  " + part.name, part.found.ok() ? *part.found
                                                 : styled("no", Style::bad, color) + "  " +
                                                       part.found.error().message});
  table.add({"interp", styled("ok", Style::good, color) + "  slow and exact, the check's word"});
  table.add({"ops", format_count(static_cast<int64_t>(builtin_registry().rows().size()))});
  table.add({"passes", format_count(static_cast<int64_t>(builtin_passes().size()))});
  std::string root = tree_root();
  table.add({"graphs", root.empty() ? "none; run inside Lathe's tree, or set LATHE_ROOT"
                                    : format_count(static_cast<int64_t>(graph_names().size()))});
  say(table.str(2));
  return best.ok() ? kHeld : kWrongInput;
}

}  // namespace

void add_doctor(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("doctor", "Say what this machine offers");
  command->callback([&session] { session.action = run; });
}

}  // namespace lathe
