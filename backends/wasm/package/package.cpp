// See package.h.
#include "backends/wasm/package/package.h"

#include <utility>

#include "backends/binding/weights_file.h"
#include "backends/wasm/emit_program.h"
#include "backends/wasm/package/loader.inc"
#include "backends/wasm/package/recipe.h"

namespace lathe::wasm {
Result<PackageFiles> make_package(const Program& program, const PackageRequest& request) {
  LATHE_TRY(CompiledProgram compiled, emit_program(program, request.isa));
  WeightsPlan plan;  // of what init, steps and state want
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.kind == BufferKind::weight) plan.add(buffer.weight, buffer.num_bytes.value());
  add_state(plan, program, request.num_inputs);
  PackageFiles files;
  LATHE_TRY(files.weights, write_weights(plan, request.weight));
  const uint64_t id = set_weights_id(files.weights, print(program));
  LATHE_TRY(std::string recipe,
            recipe_json(program, compiled, request.num_inputs, request.num_outputs, plan, id));
  compiled.module.custom.emplace_back("lathe", std::move(recipe));
  files.module = encode(compiled.module);
  files.loader = kLoader;
  return files;
}

}  // namespace lathe::wasm
