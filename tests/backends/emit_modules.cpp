// Writes the WebAssembly modules of every op's examples and of models, at both levels, for
// wasm_validate_test.mjs: FOLDER/NAME.LEVEL.wasm.
//   emit_modules FOLDER MODEL...
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "backends/wasm/emit_program.h"
#include "frontend/driver/build.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

// What cannot be lowered has no module; what can be must have one.
bool write_modules(const Model& model, const std::filesystem::path& path) {
  for (const char* level : {"simd128", "relaxed"}) {
    BuildFailure failure;
    Result<Lowered> lowered = lower(model, *find_target(level), {.threads = 1}, failure);
    if (!lowered.ok()) continue;
    const auto isa = *level == 'r' ? wasm::Isa::relaxed : wasm::Isa::simd128;
    Result<wasm::CompiledProgram> compiled = wasm::emit_program(lowered->unit.program, isa);
    if (!compiled.ok()) {
      std::fputs(render(compiled.error(), lowered->unit.module.locs).c_str(), stderr);
      return false;
    }
    std::ofstream file(fmt::format("{}.{}.wasm", path.string(), level), std::ios::binary);
    file << encode(compiled->module);
    if (!file.flush()) return false;
  }
  return true;
}

bool write_all(const std::filesystem::path& folder, const std::vector<std::string>& files) {
  for (const ExampleCase& example : all_examples()) {
    Result<BuiltExample> built = build_example(example);
    if (!built.ok()) return false;
    Model model;
    model.module = std::move(built->module);
    if (!write_modules(model, folder / example.name())) return false;
  }
  for (const std::string& file : files) {
    LocTable locs;
    ModelOptions options;
    options.allow_no_weights = true;
    Result<Model> model = load_model(file, options, locs);
    if (!model.ok()) {
      std::fputs(render(model.error(), locs).c_str(), stderr);
      return false;
    }
    if (!write_modules(*model, folder / std::filesystem::path(file).filename())) return false;
  }
  return true;
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return lathe::write_all(argv[1], {argv + 2, argv + argc}) ? 0 : 1;
}
