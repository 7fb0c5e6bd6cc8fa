// Squares of memory turned in registers: what lies along one variable becomes lanes of another.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/loop/linear.h"
#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/loop/vectorize.h"

namespace lathe {

// Vectors have lanes across .. across + lanes - 1, of which the first `rows` exist; there is one
// for each of the `steps` values of `along` from `first` on. rows and steps are at most lanes.
struct Square {
  loop::Var across, along;
  int lanes = 1;
  int64_t rows = 1;
  loop::Expr first;
  int64_t steps = 1;
};

// Whether a load's neighbours lie along `along`, and its lanes apart: what turn_loads takes.
bool is_turned(loop::Expr load, loop::Var across, loop::Var along);

// Reads the turned loads of `values` row by row and names the turned vectors in `body`: what each
// step's loads are, with `along` replaced by that step.
std::vector<loop::Bindings> turn_loads(loop::Kernel& kernel, std::span<const loop::Expr> values,
                                       const Square& square, loop::Block& body);

}  // namespace lathe
