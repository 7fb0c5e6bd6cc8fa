// The wasm target: the emitter of backends/wasm, and Node to run what it writes.
#pragma once
#include <memory>
#include <string_view>

#include "backends/backend.h"

namespace lathe {

// `isa` as in --isa ("simd128", "relaxed"), or "" for relaxed where this machine's Node has it.
// Node itself is needed only to compile: emitting works without.
Result<std::unique_ptr<Backend>> make_wasm_backend(std::string_view isa = {});

// Whether programs can run here: an error says why not.
Status check_wasm(std::string_view isa);

}  // namespace lathe
