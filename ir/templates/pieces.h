// Where an expression changes its form as a variable grows: the edges of padding, the parts of a
// concatenation, the turn of a roll.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe {

// Values of `var` within its range, sorted, at which a comparison of it with a constant, or the
// quotient of it by one, changes. Between two of them simplify_index resolves these. None for
// expressions that compare it with other variables, or that change more than `most` times.
std::vector<int64_t> piece_starts(std::span<const loop::Expr> exprs, loop::Var var,
                                  const loop::Kernel& kernel, size_t most);

}  // namespace lathe
