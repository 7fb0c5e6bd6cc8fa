// What a package's loader must know of its program, as JSON: where weights go, what to call, and
// how addresses follow from sizes.
#pragma once
#include <cstdint>
#include <string>

#include "backends/binding/weights_file.h"
#include "backends/wasm/emit_program.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::wasm {

//   "symbols"    [{"name", "min", "max"}]; sizes are given in their order
//   "tape"       instructions [op, a, b], whose values have their places; what follows names places
//   "checks"     [relation, a, b, text]: what sizes must satisfy
//   "kernels"    [at, min, max, multiple]; "fits": [needed, bytes, each, offset]
//   "buffers"    by buffer: its bytes; "address": where it lies, -1 where that follows from sizes
//   "inputs", "outputs"  [{"name", "dtype", "shape", "buffer"}] of the graph
//   "state"      [{"buffer", "offset", "bytes"}]; "mutations": [input buffer, output buffer]
//   "kept", "init"       [address, offset, bytes] of weights: for good, and by launch of init
//   "table"      {"address", "steps": words by step}; null without symbols
//   "ports", "lives", "scratch", "rest"  what binding places; see bind in loader.mjs
Result<std::string> recipe_json(const Program& program, const CompiledProgram& compiled,
                                size_t num_inputs, size_t num_outputs, const WeightsPlan& weights,
                                uint64_t weights_id);

}  // namespace lathe::wasm
