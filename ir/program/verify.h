// The verifier of programs that have a text.
#pragma once
#include <vector>

#include "ir/program/program.h"

namespace lathe {

struct ProgramPlaces {
  Loc header;
  std::vector<Loc> buffers;  // by id
};
// As verify(program), for a program that a person wrote: what is wrong is kBadProgram, told at the
// place of the buffer, launch or header that it is about.
Status verify(const Program& program, const ProgramPlaces& places);

}  // namespace lathe
