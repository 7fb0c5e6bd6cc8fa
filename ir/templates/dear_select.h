// Selects of which one side is dear and often needed by no lane of a vector: further steps of an
// iteration, higher orders of a recurrence. Such vectors branch around it.
#pragma once
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe {

struct DearSelect {
  loop::Expr select;
  loop::Expr is_needed;           // a bool that moves with the variable
  std::vector<loop::Expr> cheap;  // what the values are where no lane needs the dear side
};

// The select with the dearest side of those whose condition moves with `var`; nothing where none is
// worth a branch, or reductions stand in the values. Those of `known` are not looked at.
std::optional<DearSelect> dear_select(std::span<const loop::Expr> values, loop::Var var,
                                      const std::unordered_set<const loop::ExprNode*>& known);

}  // namespace lathe
