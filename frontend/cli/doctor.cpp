// lathe doctor: what this machine offers, and what is missing.
#include <fmt/format.h>

#include <memory>

#include "backends/cuda/device/backend.h"
#include "backends/wasm/node/backend.h"
#include "frontend/cli/command.h"
#include "frontend/cli/format.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/files.h"
#include "frontend/driver/machine.h"
#include "frontend/driver/rates.h"
#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"
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

// What the cost model reckons with, measured now when `measures`.
std::string rates_text(Backend& backend, bool measures, bool color) {
  const auto bad = [&](const Diag& diag) {
    return styled("no", Style::bad, color) + "  " + diag.message;
  };
  if (measures) {
    Result<Rates> measured = measure_rates(backend);
    if (!measured.ok()) return bad(measured.error());
    if (Status saved = save_rates(backend.target(), *measured); !saved.ok())
      return bad(saved.error());
  }
  const Result<Rates> kept = load_rates(backend.target());
  if (!kept.ok() && kept.error().code != code::kMissingFile) return bad(kept.error());
  const Rates& rates = kept.ok() ? *kept : backend.target().rates;
  return fmt::format(
      "{:.2f} GHz, {:.2f} FMA vectors a cycle; bytes a cycle: {:.0f} from L2, "
      "{:.0f} from L3, {:.0f} from memory; {:.2f} us a launch ({})",
      rates.gigahertz, rates.vectors_a_cycle, rates.l2_bytes_a_cycle, rates.l3_bytes_a_cycle,
      rates.memory_bytes_a_cycle, rates.launch_us,
      kept.ok() ? "measured" : "not measured: doctor --measure");
}

int run(bool measures) {
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
  if (best.ok()) table.add({"rates", rates_text(**best, measures, color)});
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
  auto measures = std::make_shared<bool>(false);
  command->add_flag("--measure", *measures,
                    "measure what the cost model reckons with, and keep it (a second)");
  command->callback(
      [measures, &session] { session.action = [measures] { return run(*measures); }; });
}

}  // namespace lathe
