// Programs whose steps bind sizes, on any backend: in pieces (ir/program/split.h), each an
// executable of its own, between which the host reads a number.
//
// What crosses a cut lies in memory of the host; a backend of a device copies it there and back.
#pragma once
#include <memory>

#include "backends/backend.h"

namespace lathe {

// As backend.compile(), which makes the program when none of its steps binds a size.
Result<std::unique_ptr<Executable>> compile_staged(Backend& backend, const Program& program,
                                                   const CompileOptions& options);

}  // namespace lathe
