// Digits of loop variables: see digits.h.
#include "ir/templates/digits.h"

#include "ir/loop/linear.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;
using loop::Var;

constexpr size_t kMostLoops = 12;

// The largest n that divides the extent of which `e` takes var // n or var % n; 0 for none.
int64_t find_base(const std::vector<Expr>& values, Var var, int64_t extent) {
  int64_t base = 0;
  for (Expr value : values) {
    loop::for_each(value, [&](Expr e) {
      const auto* node = std::get_if<loop::Binary>(&e->kind);
      if (node == nullptr || (node->op != BinaryOp::floor_div && node->op != BinaryOp::mod)) return;
      const auto* read = std::get_if<loop::VarRead>(&node->a->kind);
      const loop::IntConst* divisor = loop::as_int(node->b);
      if (read == nullptr || !(read->var == var) || divisor == nullptr) return;
      const int64_t n = divisor->value;
      if (n > 1 && n < extent && extent % n == 0 && n > base) base = n;
    });
  }
  return base;
}

}  // namespace

void split_digits(loop::Kernel& kernel, LoopVars& loops, std::vector<Expr>& values,
                  std::vector<Expr>& indices, int64_t least) {
  for (size_t i = 0; i < loops.vars.size() && loops.vars.size() < kMostLoops; ++i) {
    const Var var = loops.vars[i];
    if (!loops.extents[i].is_const()) continue;
    const int64_t extent = loops.extents[i].value(), base = find_base(values, var, extent);
    const bool is_innermost = i + 1 == loops.vars.size();
    if (base == 0 || (is_innermost && base < least)) continue;
    const loop::VarInfo info = kernel.vars[var.id];
    const auto add = [&](int64_t count) {
      loop::VarInfo digit = info;
      digit.max = count - 1;
      return kernel.add_var(digit);
    };
    const Var quotient = add(extent / base), remainder = add(base);
    const Expr whole =
        kernel.pool->var(quotient) * kernel.pool->integer(base) + kernel.pool->var(remainder);
    for (std::vector<Expr>* exprs : {&values, &indices})
      for (Expr& e : *exprs) e = loop::simplify_index(loop::substitute(e, var, whole), kernel);
    loops.vars[i] = quotient;
    loops.extents[i] = extent / base;
    loops.vars.insert(loops.vars.begin() + static_cast<ptrdiff_t>(i) + 1, remainder);
    loops.extents.insert(loops.extents.begin() + static_cast<ptrdiff_t>(i) + 1, base);
    --i;  // the quotient may have digits of its own
  }
}

}  // namespace lathe
