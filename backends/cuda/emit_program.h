// One translation unit for a program: the prelude and every kernel that is launched.
#pragma once
#include <string>
#include <vector>

#include "backends/cuda/emit.h"
#include "ir/program/program.h"

namespace lathe::cuda {

struct ProgramSource {
  std::string text;
  // By kernel of the program; those that nothing launches have no symbol.
  std::vector<std::string> symbols;
  std::vector<LaunchShape> shapes;
};

// The program must be verified.
Result<ProgramSource> emit_program(const Program& program, const Target& target);

}  // namespace lathe::cuda
