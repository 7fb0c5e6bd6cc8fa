// The CPU target: LLVM's X86 code generator, ORC, a thread pool.
#pragma once
#include <memory>
#include <string_view>

#include "backends/backend.h"

namespace lathe {

// `isa` as in --isa ("avx512", "avx2"), or "" for the best one of this machine. An instruction set
// that the machine lacks is an error.
Result<std::unique_ptr<Backend>> make_cpu_backend(std::string_view isa = {});

}  // namespace lathe
