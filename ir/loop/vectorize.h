// Turns a scalar expression into one over lanes of consecutive values of a variable.
#pragma once
#include <unordered_map>

#include "ir/loop/linear.h"
#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe::loop {

// Lanes var, var + 1, ..., var + lanes - 1; `var` itself then names lane 0. With a mask, loads that
// move with the variable touch enabled lanes only. Where lanes are cheaply moved within registers
// (`is_register`), loads without a mask whose lanes lie a few elements apart, or backwards, read
// all from the first to the last.
struct VectorAxis {
  Var var;
  int lanes = 1;
  Expr mask = {};
  bool is_register = false;
};

// What sub-expressions are known to be, by node; looked up before anything else.
using Bindings = std::unordered_map<const ExprNode*, Expr>;

// What does not depend on the axis is computed once and splat. Loads become contiguous where the
// index moves by one per lane, and gathers otherwise. Reduce expressions must be bound.
Expr vectorize(Expr scalar, const VectorAxis& axis, const Bindings& bound = {});

// Replaces bound nodes only; lanes stay as they are.
Expr bind(Expr e, const Bindings& bound);

}  // namespace lathe::loop
