// Runs a program with the evaluator of loop IR: slow, checked, the oracle for every backend.
#pragma once
#include <memory>
#include <span>

#include "backends/backend.h"

namespace lathe {

// init and steps, once. Views as for Executable::run; weights as for Backend::compile. Every buffer
// has memory of its own, which starts as bytes of ones (NaN in every float dtype) unless it holds a
// value. Accesses out of bounds are errors. Launches of kind host need an embedder and are refused.
Status run_program_interpreted(const Program& program, const CompileOptions& options,
                               std::span<const BufferView> inputs,
                               std::span<const BufferView> outputs);

// The same in two steps, for many runs: init now, steps for each run. Keeps a copy of the program.
Result<std::unique_ptr<Executable>> interpret(const Program& program,
                                              const CompileOptions& options);

}  // namespace lathe
