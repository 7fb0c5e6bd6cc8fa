// make_strict: see strict.h for what it takes out.
#include "ir/loop/strict.h"

#include "ir/loop/expand_math.h"
#include "ir/loop/pool.h"
#include "ir/loop/rewrite.h"

namespace lathe::loop {
namespace {

bool is_extremum(BinaryOp op) { return op == BinaryOp::min || op == BinaryOp::max; }
bool is_extremum(ReduceOp op) { return op == ReduceOp::min || op == ReduceOp::max; }

Expr strict(Expr e) {
  if (!is_float(e->dtype)) return e;
  if (const auto* n = std::get_if<Fma>(&e->kind)) return n->a * n->b + n->c;
  const auto* binary = std::get_if<Binary>(&e->kind);
  const auto* lanes = std::get_if<ReduceLanes>(&e->kind);
  // -0 + 0 is +0, and every other number stays.
  if ((binary && is_extremum(binary->op)) || (lanes && is_extremum(lanes->op)))
    return e + constant_like(e, 0);
  return e;
}

}  // namespace

void make_strict(Kernel& kernel) {
  expand_math(kernel, false);
  rewrite(kernel, strict);
}

}  // namespace lathe::loop
