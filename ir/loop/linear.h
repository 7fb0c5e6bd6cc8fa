// Integer index analysis that lowering and every emitter share: linear forms over loop variables,
// and the simplification of floor_div and mod by ranges.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe::loop {

// constant + sum of coefficient * atom; atoms are variables, sizes, products of either with a size,
// or non-linear sub-expressions, each once, in a deterministic order, with non-zero coefficients.
// Sizes in it are products of symbols: i*(2*s0 + 1) is 2*(i*s0) + i.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<Expr, int64_t>> terms;
  int64_t coefficient(Var var) const;  // of the bare variable; 0 when absent
  bool depends_on(Var var) const;      // in any atom, also inside non-linear ones
};
Linear linear(Expr index);
Expr to_expr(Pool& pool, const Linear& form);

struct Interval {
  int64_t min, max;
};  // inclusive; saturates at the int64 limits
Interval interval(Expr index, const Kernel& kernel);

// The same value in simpler form: linear terms merged, and with the variables' ranges
// (8*i + j)//8 = i and (8*i + j)%8 = j for j in [0, 8). Used by every view that splits or merges
// dims.
Expr simplify_index(Expr index, const Kernel& kernel);

bool depends_on(Expr e, Var var);
// Substitutes a variable in an expression or a block.
Expr substitute(Expr e, Var var, Expr value);

}  // namespace lathe::loop
