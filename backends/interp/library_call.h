// Library calls as plain loops: what a target's library must agree with.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "ir/program/call.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe {

// Runs a call of a verified program; `bytes` gives a buffer's memory. Sums are in f32 (f64 for
// f64) in the order of the summed dim, and each result is rounded once, at its store; attention
// rounds its weights too, as the libraries do between the two products. Calls of more than 2^34
// multiplications are refused.
Status run_call(const LibraryCall& call, std::span<const ProgramBuffer> buffers,
                const std::function<std::byte*(BufferId)>& bytes);

}  // namespace lathe
