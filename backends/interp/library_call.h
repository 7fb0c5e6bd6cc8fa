// Library calls as plain loops: what a target's library must agree with.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "ir/loop/text.h"
#include "ir/program/call.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe {

// Runs a call of a verified program; `bytes` gives a buffer's memory. Sums are in f32 (f64 for
// f64) in the order of the summed dim, and each result is rounded once, at its store; attention
// rounds its weights too, as the libraries do between the two products. Takes a step for each
// multiplication.
Status run_call(const LibraryCall& call, std::span<const ProgramBuffer> buffers,
                const std::function<std::byte*(BufferId)>& bytes, loop::StepBudget& steps);

// kTooLarge: a launch that needs more steps than are left.
Diag out_of_steps(const loop::StepBudget& steps);

}  // namespace lathe
