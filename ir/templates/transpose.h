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

// Of as many vectors as lanes: lane i of the result's vector j is what lane j of vector i was.
// Names what it needs in `body`.
std::vector<loop::Expr> turn_square(loop::Kernel& kernel, loop::Block& body,
                                    std::vector<loop::Expr> vectors);

// Whether a load's neighbours lie along `along`, and its lanes apart: what turn_loads takes.
bool is_turned(loop::Expr load, loop::Var across, loop::Var along);

// outs[i][index] = values[i] for every element of the square, whose turned loads are read row by
// row. `axis` is of `across`.
void store_square(loop::Kernel& kernel, const Square& square, const loop::VectorAxis& axis,
                  std::span<const loop::BufferRef> outs, std::span<const loop::Expr> values,
                  loop::Expr index, loop::Block& body);

// The same where the results are neighbours along `along` instead, and vectors are turned before
// they are stored. Reductions are `bound`.
void store_turned_square(loop::Kernel& kernel, const Square& square, const loop::VectorAxis& axis,
                         std::span<const loop::BufferRef> outs, std::span<const loop::Expr> values,
                         loop::Expr index, const loop::Bindings& bound, loop::Block& body);

// The variable before the last that all reductions read along, when none of them moves with the
// last one, as statistics of channels that lie apart do: what should be lanes instead. vars.size()
// for none.
size_t find_lanes_of_sums(std::span<const loop::Expr> values, std::span<const loop::Var> vars);

}  // namespace lathe
