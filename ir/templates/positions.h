// Positions from data that kernels hold inside a dim, whatever the data says: nearly always they
// are inside, and a whole vector that is needs no clamp, nor that its lanes pass through registers.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe {

struct FreePositions {
  loop::Expr is_outside;           // of any position, a bool that moves with the variable
  std::vector<loop::Expr> values;  // what they are where none is outside
};

// What the values are without the clamps of positions that are read and move with `var`; nothing
// where there are none, more than a few, or reductions.
std::optional<FreePositions> without_clamps(std::span<const loop::Expr> values, loop::Var var);

}  // namespace lathe
