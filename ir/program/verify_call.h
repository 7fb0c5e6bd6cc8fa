// The verifier of library calls; part of that of programs.
#pragma once
#include <span>
#include <string>

#include "ir/program/call.h"
#include "ir/program/program.h"

namespace lathe {

// What is wrong with the call, or "". Checked: every operand lies within its buffer, whatever its
// offset and strides; no element is written twice; dtypes, shapes, windows and epilogues fit each
// other. A call of numbers that passes reads and writes nothing beyond its buffers; of symbolic
// sizes what is wrong at all of them is refused, and who binds them looks again at the numbers:
// `num_bytes` are then those of each buffer.
std::string find_wrong(const LibraryCall& call, std::span<const ProgramBuffer> buffers,
                       std::span<const int64_t> num_bytes = {});

}  // namespace lathe
