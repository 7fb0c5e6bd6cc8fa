// Linear forms of index expressions, and substitution of variables.
#include "ir/loop/linear.h"

#include <algorithm>
#include <type_traits>
#include <unordered_map>

#include "ir/loop/ranges.h"
#include "ir/loop/scalar.h"

namespace lathe::loop {
namespace {

// A coefficient is a number, or a Dim where a sum has sizes in it.
int64_t plus(int64_t a, int64_t b) { return wrapping_add(a, b); }
int64_t times(int64_t a, int64_t b) { return wrapping_mul(a, b); }
Dim plus(const Dim& a, const Dim& b) { return a + b; }
Dim times(const Dim& a, const Dim& b) { return a * b; }

template <class C>
struct Part {
  Expr e;
  C factor;
};

// What a linear op sums; false for atoms and constants. With numbers for coefficients, what is
// multiplied by a size is an atom.
template <class C>
bool split_sum(Expr e, std::vector<Part<C>>& parts) {
  parts.clear();
  if (e->dtype != DType::i64 || e->lanes != 1) return false;
  if (const auto* n = std::get_if<Unary>(&e->kind); n && n->op == UnaryOp::neg) {
    parts = {{n->x, -1}};
    return true;
  }
  const auto* n = std::get_if<Binary>(&e->kind);
  if (!n) return false;
  if (n->op == BinaryOp::add) parts = {{n->a, 1}, {n->b, 1}};
  if (n->op == BinaryOp::sub) parts = {{n->a, 1}, {n->b, -1}};
  if (n->op != BinaryOp::mul) return !parts.empty();
  if (const IntConst* c = as_int(n->b)) parts = {{n->a, c->value}};
  if constexpr (std::is_same_v<C, Dim>)
    if (const auto* size = std::get_if<Size>(&n->b->kind)) parts = {{n->a, size->value}};
  return !parts.empty();
}

bool is_size(Expr e) { return std::holds_alternative<Size>(e->kind); }

// x * n or n, of a size n.
bool has_size(Expr e) {
  const auto* n = std::get_if<Binary>(&e->kind);
  return is_size(e) || (n != nullptr && n->op == BinaryOp::mul && is_size(n->b));
}

// Bare variables first, by number (outer loops have lower ones); then by creation.
bool comes_before(Expr a, Expr b) {
  const auto* x = std::get_if<VarRead>(&a->kind);
  const auto* y = std::get_if<VarRead>(&b->kind);
  if ((x != nullptr) != (y != nullptr)) return x != nullptr;
  return x ? x->var.id < y->var.id : a->id < b->id;
}

void sort_terms(Linear& form) {
  std::sort(form.terms.begin(), form.terms.end(),
            [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
}

// Atoms and constants of a sum with their coefficients, in a deterministic order. Children before
// parents; walking back, every node's coefficient is complete before it is handed to its children,
// so shared sub-expressions are visited once.
template <class C>
std::vector<std::pair<Expr, C>> collect(Expr index) {
  std::vector<Expr> order;
  std::unordered_map<const ExprNode*, C> coefficients;
  std::vector<std::pair<Expr, bool>> stack = {{index, false}};
  std::vector<Part<C>> parts;
  while (!stack.empty()) {
    auto [e, is_ready] = stack.back();
    stack.pop_back();
    if (is_ready) {
      order.push_back(e);
      continue;
    }
    if (!coefficients.emplace(e.node(), C(0)).second) continue;
    stack.push_back({e, true});
    split_sum(e, parts);
    for (size_t i = parts.size(); i-- > 0;) stack.push_back({parts[i].e, false});
  }
  std::vector<std::pair<Expr, C>> atoms;
  coefficients[index.node()] = 1;
  for (size_t i = order.size(); i-- > 0;) {
    Expr e = order[i];
    const C coefficient = coefficients[e.node()];
    if (split_sum(e, parts)) {
      for (const Part<C>& part : parts) {
        C& sum = coefficients[part.e.node()];
        sum = plus(sum, times(coefficient, part.factor));
      }
    } else {
      atoms.push_back({e, coefficient});
    }
  }
  return atoms;
}

// The form of a sum with sizes in it: the terms of each Dim are products of an atom and a size.
Linear linear_of_sizes(Expr index) {
  Linear form;
  Pool& pool = *index->pool;
  Dim constant = 0;
  for (const auto& [atom, coefficient] : collect<Dim>(index)) {
    if (const std::optional<Dim> size = as_size(atom)) {
      constant = constant + *size * coefficient;
      continue;
    }
    for (const auto& [size, factor] : coefficient.monomials())
      form.terms.push_back({atom * pool.size(size), factor});
  }
  for (const auto& [size, factor] : constant.monomials()) {
    if (size.is_const()) {
      form.constant = factor;
    } else {
      form.terms.push_back({pool.size(size), factor});
    }
  }
  sort_terms(form);
  return form;
}

}  // namespace

bool is_linear_op(Expr e) {
  std::vector<Part<int64_t>> parts;
  if (split_sum(e, parts)) return true;
  if (!has_size(e) || e->dtype != DType::i64 || e->lanes != 1) return false;
  // Unless it is its own only term.
  const Linear form = linear_of_sizes(e);
  return form.constant != 0 || form.terms.size() != 1 || form.terms[0].first != e ||
         form.terms[0].second != 1;
}

Linear linear(Expr index) {
  Linear form;
  for (const auto& [atom, coefficient] : collect<int64_t>(index)) {
    if (has_size(atom)) return linear_of_sizes(index);
    if (const IntConst* c = as_int(atom); c && atom->dtype == DType::i64) {
      form.constant = wrapping_add(form.constant, wrapping_mul(coefficient, c->value));
    } else if (coefficient != 0) {
      form.terms.push_back({atom, coefficient});
    }
  }
  sort_terms(form);
  return form;
}

void accumulate(Linear& to, const Linear& from, int64_t factor) {
  to.constant = wrapping_add(to.constant, wrapping_mul(from.constant, factor));
  for (const auto& [atom, coefficient] : from.terms) {
    int64_t change = wrapping_mul(coefficient, factor);
    auto found = std::find_if(to.terms.begin(), to.terms.end(),
                              [a = atom](const auto& term) { return term.first == a; });
    if (found == to.terms.end()) {
      if (change != 0) to.terms.push_back({atom, change});
      continue;
    }
    found->second = wrapping_add(found->second, change);
    if (found->second == 0) to.terms.erase(found);
  }
  sort_terms(to);
}

int64_t Linear::coefficient(Var var) const {
  for (const auto& [atom, coefficient] : terms)
    if (const auto* read = std::get_if<VarRead>(&atom->kind); read && read->var == var)
      return coefficient;
  return 0;
}

bool Linear::depends_on(Var var) const {
  return std::any_of(terms.begin(), terms.end(),
                     [var](const auto& term) { return loop::depends_on(term.first, var); });
}

Expr to_expr(Pool& pool, const Linear& form) {
  // Positive terms first, so that the text reads a*4 - b and not -b + a*4.
  Expr sum;
  for (const auto& [atom, coefficient] : form.terms) {
    if (coefficient < 0) continue;
    Expr term = atom * pool.integer(coefficient);
    sum = sum ? sum + term : term;
  }
  for (const auto& [atom, coefficient] : form.terms) {
    if (coefficient >= 0) continue;
    if (sum) {
      sum = sum - atom * pool.integer(wrapping_sub(0, coefficient));
    } else {
      sum = atom * pool.integer(coefficient);
    }
  }
  Expr constant = pool.integer(form.constant);
  return sum ? sum + constant : constant;
}

bool depends_on(Expr e, Var var) {
  bool found = false;
  for_each(e, [&](Expr node) {
    if (const auto* read = std::get_if<VarRead>(&node->kind)) found |= read->var == var;
  });
  return found;
}

Expr substitute(Expr e, Var var, Expr value) {
  return rewrite(e, [&](Expr node) {
    const auto* read = std::get_if<VarRead>(&node->kind);
    return read && read->var == var ? value : Expr();
  });
}

}  // namespace lathe::loop
