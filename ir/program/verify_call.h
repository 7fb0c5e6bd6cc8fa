// The verifier of library calls; part of that of programs.
#pragma once
#include <span>
#include <string>

#include "ir/program/call.h"
#include "ir/program/program.h"

namespace lathe {

// What is wrong with the call, or "". Checked: every operand lies within its buffer, whatever its
// offset and strides; no element is written twice; dtypes, shapes, windows and epilogues fit each
// other. A call that passes reads and writes nothing beyond its buffers.
std::string find_wrong(const LibraryCall& call, std::span<const ProgramBuffer> buffers);

}  // namespace lathe
