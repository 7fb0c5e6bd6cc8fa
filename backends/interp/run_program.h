// Runs a program with the evaluator of loop IR: slow, checked, the oracle for every backend.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "backends/backend.h"

namespace lathe {

// What a program may take; more is kTooLarge, before memory is allocated and before time is spent.
struct InterpretLimits {
  uint64_t max_bytes = uint64_t{16} << 30;  // of all buffers, and again of inputs and outputs
  uint64_t max_steps = uint64_t{1} << 38;   // of init, and of each run; see loop::StepBudget
};

// init and steps, once. Views as for Executable::run; weights as for Backend::compile. Every buffer
// has memory of its own, which starts as bytes of ones (NaN in every float dtype) unless it holds a
// value. Accesses out of bounds are errors. Launches of kind host need an embedder and are refused.
Status run_program_interpreted(const Program& program, const CompileOptions& options,
                               std::span<const BufferView> inputs,
                               std::span<const BufferView> outputs);

// The same in two steps, for many runs: init now, steps for each run. Keeps a copy of the program.
Result<std::unique_ptr<Executable>> interpret(const Program& program, const CompileOptions& options,
                                              const InterpretLimits& limits = {});

}  // namespace lathe
