// Ahead of time: a program as a module, a loader in JavaScript and a file of weights, which run
// where there is WebAssembly and nothing of Lathe.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "backends/backend.h"
#include "backends/wasm/emit.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::wasm {

struct PackageFiles {
  std::string module;   // NAME.wasm, with what the loader needs to know in a custom section
  std::string loader;   // NAME.mjs
  std::string weights;  // NAME.weights
};

struct PackageRequest {
  Isa isa = Isa::simd128;
  size_t num_inputs = 0, num_outputs = 0;  // of the graph, the first ones of the program's
  // Bytes of weights as they came, and of state, by name.
  std::function<Result<BufferView>(const std::string& name)> weight;
};

// The loader packs weights: what init does, it does there.
Result<PackageFiles> make_package(const Program& program, const PackageRequest& request);

}  // namespace lathe::wasm
