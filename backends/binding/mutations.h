// State that runs change.
#pragma once
#include <span>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe {

// Puts mutated contents where the next run, or the caller, looks for them. `inputs` and `outputs`
// are those of the run that is over, in the program's order.
Status write_back(const Program& program, Executable& executable,
                  std::span<const BufferView> inputs, std::span<const BufferView> outputs);

}  // namespace lathe
