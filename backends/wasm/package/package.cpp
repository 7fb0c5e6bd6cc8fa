// See package.h.
#include "backends/wasm/package/package.h"

#include <cstring>
#include <utility>

#include "backends/wasm/emit_program.h"
#include "backends/wasm/package/loader.inc"
#include "backends/wasm/package/recipe.h"
#include "ir/program/arena.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"

namespace lathe::wasm {
namespace {

constexpr std::string_view kMagic = "lathe weights 1\n";
constexpr int64_t kHeaderBytes = 64;  // magic and id

// The file's places of everything that init, steps and state want of the model.
StoredWeights place_weights(const Program& program, size_t num_inputs) {
  StoredWeights stored;
  stored.num_bytes = kHeaderBytes;
  const auto add = [&](const std::string& name, const ProgramBuffer& buffer) {
    if (!stored.offsets.emplace(name, stored.num_bytes).second) return;
    stored.num_bytes += aligned(buffer.num_bytes.value());
  };
  for (const ProgramBuffer& buffer : program.buffers)
    if (buffer.kind == BufferKind::weight) add(buffer.weight, buffer);
  for (size_t i = num_inputs; i < program.inputs.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[static_cast<size_t>(program.inputs[i])];
    add(buffer.name, buffer);
  }
  return stored;
}

}  // namespace

Result<PackageFiles> make_package(const Program& program, const PackageRequest& request) {
  LATHE_TRY(CompiledProgram compiled, emit_program(program, request.isa));
  StoredWeights stored = place_weights(program, request.num_inputs);
  PackageFiles files;
  files.weights.assign(static_cast<size_t>(stored.num_bytes), '\0');
  for (const auto& [name, offset] : stored.offsets) {
    LATHE_TRY(const BufferView view, request.weight(name));
    if (view.num_bytes > files.weights.size() - static_cast<size_t>(offset))
      return Diag{code::kBadValue, Loc::unknown(), "weight '" + name + "' has another size"};
    if (view.num_bytes > 0) std::memcpy(files.weights.data() + offset, view.bytes, view.num_bytes);
  }
  stored.id = Hasher().add(print(program)).add(files.weights).value();
  std::memcpy(files.weights.data(), kMagic.data(), kMagic.size());
  std::memcpy(files.weights.data() + kMagic.size(), &stored.id, sizeof stored.id);
  LATHE_TRY(std::string recipe,
            recipe_json(program, compiled, request.num_inputs, request.num_outputs, stored));
  compiled.module.custom.emplace_back("lathe", std::move(recipe));
  files.module = encode(compiled.module);
  files.loader = kLoader;
  return files;
}

}  // namespace lathe::wasm
