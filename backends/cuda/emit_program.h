// The translation units of a program: the prelude and every kernel that is launched.
#pragma once
#include <string>
#include <vector>

#include "backends/cuda/emit.h"
#include "ir/program/program.h"

namespace lathe::cuda {

struct TranslationUnit {
  std::string text;
  std::vector<size_t> kernels;  // by their numbers in the program
};

struct ProgramSource {
  std::string text;  // of all, as one unit
  // The same in units of their own: NVRTC's time grows with the text, and has little to share.
  std::vector<TranslationUnit> units;
  // Whether a kernel's ranges do not say that its sizes are small, so that launches have to see to
  // it: of larger ones the text is another.
  bool assumes_small_sizes = false;
  // By kernel of the program; those that nothing launches have no symbol.
  std::vector<std::string> symbols;
  std::vector<LaunchShape> shapes;
};

// The program must be verified. `has_small_sizes`: see EmitOptions.
Result<ProgramSource> emit_program(const Program& program, const Target& target,
                                   bool has_small_sizes = true);

}  // namespace lathe::cuda
