// Packages: see package.h.
#include "frontend/cli/package.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <utility>
#include <vector>

#include "backends/cpu/package/package.h"
#include "backends/wasm/package/package.h"
#include "frontend/cli/format.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/files.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;  // by name, the large one first

// "bert_base_aten" of a path to bert_base.aten.json.gz.
std::string package_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".gz", ".json", ".pt2", ".lathe"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) > 127)
      c = '_';
  const bool has_letter = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  return has_letter ? name : "model_" + name;
}

Result<Files> cpu_package(const Loaded& loaded, const Build& build, const std::string& name) {
  const Graph& graph = loaded.model.module.main();
  WeightStore weights = loaded.model.weights();
  cpu::PackageRequest request;
  request.name = name;
  LATHE_TRY(request.isa, cpu::parse_isa(loaded.backend->target().isa));
  request.num_inputs = graph.params.size();
  request.num_outputs = graph.outputs.size();
  request.weight = [&](const std::string& weight) { return weights.get(weight); };
  const Program& program = build.symbolic ? *build.symbolic : build.program();
  LATHE_TRY(cpu::PackageFiles files, cpu::make_package(program, *build.executable, request));
  return Files{{name + ".weights", std::move(files.weights)},
               {name + ".so", std::move(files.library)},
               {name + ".h", std::move(files.header)}};
}

// Nothing runs here: the loader packs the weights.
Result<Files> wasm_package(const Loaded& loaded, BuildFailure& failure, const std::string& name) {
  const Target& target = loaded.backend->target();
  LATHE_TRY(const Lowered lowered, lower(loaded.model, target, loaded.request, failure));
  failure.locs = lowered.unit.module.locs;
  if (lowered.report.form != Form::planned)
    return Diag{
        code::kBadForm, Loc::unknown(),
        fmt::format("pipeline '{}' does not end in a planned program", loaded.request.passes)};
  const Graph& graph = loaded.model.module.main();
  WeightStore weights = loaded.model.weights();
  wasm::PackageRequest request;
  request.isa = target.isa == "relaxed" ? wasm::Isa::relaxed : wasm::Isa::simd128;
  request.num_inputs = graph.params.size();
  request.num_outputs = graph.outputs.size();
  request.weight = [&](const std::string& weight) { return weights.get(weight); };
  LATHE_TRY(wasm::PackageFiles files, wasm::make_package(lowered.unit.program, request));
  return Files{{name + ".weights", std::move(files.weights)},
               {name + ".wasm", std::move(files.module)},
               {name + ".mjs", std::move(files.loader)}};
}

Result<Files> make_files(const Loaded& loaded, BuildFailure& failure) {
  const std::string& target = loaded.backend->target().name;
  if (target != "cpu" && target != "wasm")
    return Diag{code::kUnsupported, Loc::unknown(),
                fmt::format("packages are for the targets cpu and wasm, not {}", target)};
  if (!loaded.model.has_weights() && !loaded.request.weights.is_random)
    return Diag{
        code::kMissingWeight, Loc::unknown(),
        fmt::format("'{}' has no weights to put into a package; --weights=random:SEED makes "
                    "some",
                    loaded.model.path)};
  const std::string name = package_name(loaded.model.path);
  if (target == "wasm") return wasm_package(loaded, failure, name);
  LATHE_TRY(const Build made, build(loaded.model, *loaded.backend, loaded.request, failure));
  return cpu_package(loaded, made, name);
}

}  // namespace

int emit_package(const Loaded& loaded, const std::string& folder) {
  BuildFailure failure;
  if (folder.empty())
    return report({code::kBadValue, Loc::unknown(), "a package is several files; give -o FOLDER"},
                  failure.locs);
  const Result<Files> files = make_files(loaded, failure);
  if (!files.ok()) return report(files.error(), failure.locs, failure.reproducer);
  for (const auto& [name, bytes] : *files) {
    const std::string path = std::filesystem::path(folder) / name;
    const Status written = write_output(path, bytes);
    if (!written.ok()) return report(written.error(), failure.locs);
    say("{}  {}\n", path, format_bytes(static_cast<int64_t>(bytes.size())));
  }
  return kHeld;
}

}  // namespace lathe
