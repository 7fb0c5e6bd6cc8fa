// Runs a program with the evaluator of loop IR: slow, checked, the oracle for every backend.
#pragma once
#include <span>

#include "backends/backend.h"

namespace lathe {

// init and steps, once. Views as for Executable::run; weights as for Backend::compile.
// Out-of-bounds accesses of kernels are errors. Runs kernel and copy launches.
Status run_program_interpreted(const Program& program, const CompileOptions& options,
                               std::span<const BufferView> inputs,
                               std::span<const BufferView> outputs);

}  // namespace lathe
