// A program without its init: what init makes of weights is weights.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "backends/backend.h"
#include "backends/binding/weights_file.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::cpu {

struct Frozen {
  Program program;  // without launches of init, and without kernels that nothing launches
  // Of what init made, by the name of a weight that is no other's; owned by the executable.
  std::map<std::string, BufferView> packed;
};
// `executable` was made of the program, and outlives what comes out.
Result<Frozen> freeze(const Program& program, const Executable& executable);

// Of the weights that a frozen program's steps read, and of its state.
WeightsPlan plan_weights(const Program& program, size_t num_inputs);

}  // namespace lathe::cpu
