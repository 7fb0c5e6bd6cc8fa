// Programs whose steps bind sizes, on any backend: in pieces (ir/program/split.h), each an
// executable of its own, between which the host reads a number.
//
// What crosses a cut lies in memory of the backend's choice. No run of it is one CUDA graph.
#pragma once
#include <memory>

#include "backends/backend.h"

namespace lathe {

// As backend.compile(), which makes the program when none of its steps binds a size.
Result<std::unique_ptr<Executable>> compile_staged(Backend& backend, const Program& program,
                                                   const CompileOptions& options);

}  // namespace lathe
