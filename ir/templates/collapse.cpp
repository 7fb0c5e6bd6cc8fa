// Loop collapsing: i and j with i*n + j everywhere, j in [0, n), become one loop.
#include "ir/templates/collapse.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ir/loop/linear.h"
#include "ir/loop/sized.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::Var;

bool only_linear(const loop::Linear& form, Var var) {
  for (const auto& [atom, coefficient] : form.terms) {
    if (!std::holds_alternative<loop::VarRead>(atom->kind) && loop::depends_on(atom, var))
      return false;
  }
  return true;
}

// True when the value uses the variable other than in memory indices (an arange, a causal mask).
bool is_used_outside_indices(Expr value, Var var) {
  std::unordered_map<const loop::ExprNode*, bool> seen;
  auto visit = [&](auto&& self, Expr e) -> bool {
    if (auto found = seen.find(e.node()); found != seen.end()) return found->second;
    bool used = false;
    if (auto* load = std::get_if<loop::Load>(&e->kind)) {
      used = load->mask && self(self, load->mask);
    } else {
      if (auto* read = std::get_if<loop::VarRead>(&e->kind)) used = read->var == var;
      for (Expr child : loop::children(e)) used = used || self(self, child);
    }
    seen.emplace(e.node(), used);
    return used;
  };
  return visit(visit, value);
}

// The same of a form in which sizes stand.
bool only_linear(const loop::SizedLinear& form, Var var) {
  return std::none_of(form.terms.begin(), form.terms.end(), [&](const auto& term) {
    return !std::holds_alternative<loop::VarRead>(term.first->kind) &&
           loop::depends_on(term.first, var);
  });
}

Dim coefficient(const loop::SizedLinear& form, Var var) {
  for (const auto& [atom, factor] : form.terms)
    if (const auto* read = std::get_if<loop::VarRead>(&atom->kind); read && read->var == var)
      return factor;
  return 0;
}

bool walks_evenly(const std::vector<Expr>& values, const std::vector<Expr>& indices, Var outer,
                  Var inner, const Dim& extent) {
  auto is_even = [&](Expr index) {
    const loop::Linear form = loop::linear(index);
    if (!extent.is_const() || loop::has_sizes(form)) {
      const loop::SizedLinear sized = loop::sized(form);
      return only_linear(sized, outer) && only_linear(sized, inner) &&
             coefficient(sized, outer) == coefficient(sized, inner) * extent;
    }
    const int64_t n = extent.value();
    return only_linear(form, outer) && only_linear(form, inner) &&
           form.coefficient(outer) == form.coefficient(inner) * n;
  };
  for (Expr index : indices) {
    if (!is_even(index)) return false;
  }
  for (Expr value : values) {
    if (is_used_outside_indices(value, outer) || is_used_outside_indices(value, inner))
      return false;
    bool even = true;
    loop::for_each(value, [&](Expr e) {
      if (auto* load = std::get_if<loop::Load>(&e->kind)) even = even && is_even(load->index);
    });
    if (!even) return false;
  }
  return true;
}

}  // namespace

void collapse(loop::Kernel& kernel, LoopVars& loops, std::vector<Expr>& values,
              std::vector<Expr>& indices) {
  Expr zero = kernel.pool->integer(0);
  auto drop = [&](size_t i) {
    for (Expr& value : values) value = loop::substitute(value, loops.vars[i], zero);
    for (Expr& index : indices) index = loop::substitute(index, loops.vars[i], zero);
    loops.vars.erase(loops.vars.begin() + static_cast<long>(i));
    loops.extents.erase(loops.extents.begin() + static_cast<long>(i));
  };
  for (size_t i = loops.vars.size(); i-- > 0;) {
    if (loops.extents[i] == Dim(1)) drop(i);
  }
  for (size_t i = loops.vars.size(); i-- > 1;) {
    const Var outer = loops.vars[i - 1], inner = loops.vars[i];
    if (!walks_evenly(values, indices, outer, inner, loops.extents[i])) continue;
    const Dim both = loops.extents[i] * loops.extents[i - 1];
    if (both.is_too_large()) continue;
    loops.extents[i] = both;
    kernel.set_extent(inner, both);
    drop(i - 1);
  }
}

void collapse(loop::Kernel& kernel, loop::Reduce& reduce) {
  LoopVars loops{reduce.vars, {}};
  for (Expr extent : reduce.extents) {
    const std::optional<Dim> size = loop::as_size(extent);
    if (!size) return;
    loops.extents.push_back(*size);
  }
  std::vector<Expr> values = {reduce.body}, indices;
  collapse(kernel, loops, values, indices);
  if (loops.vars.empty())
    return;  // a single element: keep the loop, its body still names the variable
  reduce.vars = loops.vars;
  reduce.body = values[0];
  reduce.extents.clear();
  for (const Dim& extent : loops.extents) reduce.extents.push_back(kernel.pool->size(extent));
}

}  // namespace lathe
