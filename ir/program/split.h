// A program whose steps bind sizes, as programs that follow each other: what a step binds, the next
// piece has for a size.
#pragma once
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace lathe {

struct Piece {
  // Takes and gives what other pieces and the caller have in memory: temporaries that cross a cut
  // are its inputs and outputs. Its symbols are those that have values when it runs, its guards
  // those of them. Of init it has what its steps need.
  Program program;
  // By input and output of the piece, the buffer of the whole program.
  std::vector<BufferId> inputs, outputs;
  // By step of the piece, the step of the whole program; -1 of one that there is not: a copy of
  // what an earlier piece wrote, and this one writes on.
  std::vector<int> steps;
  // What is bound behind it, and the buffer of the whole program that has the number; empty in the
  // last.
  std::string symbol = {};
  BufferId value = -1;
  Loc loc = {};  // of the step that binds it
};

// `program` is verified. One piece where no step binds a size.
std::vector<Piece> split(const Program& program);

// kUnsupported, at the step, where one binds a size: for who runs all steps at once.
Status check_is_one_piece(const Program& program);

}  // namespace lathe
