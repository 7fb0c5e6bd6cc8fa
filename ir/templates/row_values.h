// What a sum over a row computes of each element and the row's results compute again: the
// exponentials of a softmax.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/loop/pool.h"

namespace lathe {

struct RowValue {
  loop::Expr reduce;  // the sum
  loop::Expr first;   // over the sum's variable
  loop::Expr again;   // over the row's
};

// Those among `values` over rows of `extent` elements along `inner` that compute a function:
// arithmetic takes no longer than memory.
std::vector<RowValue> row_values(std::span<const loop::Expr> values, loop::Var inner,
                                 const Dim& extent);

}  // namespace lathe
