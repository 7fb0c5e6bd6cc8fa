// Elements that a row computes twice: see row_values.h.
#include "ir/templates/row_values.h"

#include <unordered_set>

#include "ir/loop/linear.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;
using loop::UnaryOp;

bool is_function(Expr e) {
  if (const auto* unary = std::get_if<loop::Unary>(&e->kind))
    return unary->op >= UnaryOp::exp && unary->op <= UnaryOp::erf;
  const auto* binary = std::get_if<loop::Binary>(&e->kind);
  return binary != nullptr && binary->op == BinaryOp::pow;
}

}  // namespace

std::vector<RowValue> row_values(std::span<const Expr> values, loop::Var inner, const Dim& extent) {
  std::unordered_set<const loop::ExprNode*> computed;
  loop::for_each(values, [&](Expr e) { computed.insert(e.node()); });
  std::vector<RowValue> found;
  loop::for_each(values, [&](Expr e) {
    const auto* reduce = std::get_if<loop::Reduce>(&e->kind);
    if (reduce == nullptr || reduce->vars.size() != 1) return;
    if (loop::as_size(reduce->extents[0]) != extent) return;
    const loop::Var own = reduce->vars[0];
    // Not of what is inside one that was found.
    loop::rewrite(reduce->body, [&](Expr part) {
      if (!is_function(part) || !loop::depends_on(part, own)) return Expr();
      const Expr again = loop::substitute(part, own, e->pool->var(inner));
      if (computed.count(again.node()) == 0) return Expr();
      found.push_back({e, part, again});
      return part;
    });
  });
  return found;
}

}  // namespace lathe
