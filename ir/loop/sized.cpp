// Symbolic coefficients and bounds: see sized.h.
#include "ir/loop/sized.h"

#include <algorithm>

#include "ir/loop/scalar.h"

namespace lathe::loop {
namespace {

// x and n of x * n; the whole and 1 of anything else.
std::pair<Expr, Dim> split_product(Expr atom) {
  const auto* product = std::get_if<Binary>(&atom->kind);
  if (product != nullptr && product->op == BinaryOp::mul && atom->lanes == 1)
    if (const auto* size = std::get_if<Size>(&product->b->kind)) return {product->a, size->value};
  return {atom, 1};
}

}  // namespace

bool has_sizes(const Linear& form) {
  return std::any_of(form.terms.begin(), form.terms.end(), [](const auto& term) {
    return std::holds_alternative<Size>(term.first->kind) ||
           !split_product(term.first).second.is_const();
  });
}

SizedLinear sized(const Linear& form) {
  SizedLinear result{form.constant, {}};
  for (const auto& [atom, coefficient] : form.terms) {
    if (const auto* size = std::get_if<Size>(&atom->kind)) {
      result.constant = result.constant + size->value * Dim(coefficient);
      continue;
    }
    const auto [base, factor] = split_product(atom);
    const Dim more = factor * Dim(coefficient);
    const auto same = std::find_if(result.terms.begin(), result.terms.end(),
                                   [b = base](const auto& term) { return term.first == b; });
    if (same == result.terms.end()) {
      result.terms.push_back({base, more});
    } else {
      same->second = same->second + more;
    }
  }
  return result;
}

Expr to_expr(Pool& pool, const SizedLinear& form) {
  Expr sum = pool.integer(0);
  for (const auto& [atom, factor] : form.terms) sum = sum + atom * pool.size(factor);
  return to_expr(pool, linear(sum + pool.size(form.constant)));
}

Interval SizeBounds::range(const SizedLinear& form) {
  Interval result{INT64_MIN, INT64_MAX};
  if (const auto low = lower(form)) result.min = range(*low).min.value_or(INT64_MIN);
  if (const auto high = upper(form)) result.max = range(*high).max.value_or(INT64_MAX);
  return result;
}

std::optional<Dim> SizeBounds::bound(const SizedLinear& form, bool is_upper) {
  Dim sum = form.constant;
  for (const auto& [atom, factor] : form.terms) {
    const DimRange sign = range(factor);
    const bool is_positive = sign.min.value_or(-1) >= 0;
    if (!is_positive && sign.max.value_or(1) > 0) return std::nullopt;
    const std::optional<Dim> extreme = bound(atom, is_upper == is_positive);
    if (!extreme) return std::nullopt;
    sum = sum + *extreme * factor;
  }
  if (sum.is_too_large()) return std::nullopt;
  return sum;
}

std::optional<Dim> SizeBounds::bound(Expr atom, bool is_upper) {
  if (const auto* read = std::get_if<VarRead>(&atom->kind)) {
    const VarInfo& info = kernel_.vars[read->var.id];
    if (is_upper && !info.extent.is_const()) return info.extent - Dim(1);
  }
  if (const auto* n = std::get_if<Binary>(&atom->kind); n && atom->lanes == 1) {
    const std::optional<Dim> divisor = as_size(n->b);
    const bool is_divided = divisor && range(*divisor).min.value_or(0) >= 1;
    if (n->op == BinaryOp::mod && is_divided) return is_upper ? *divisor - Dim(1) : Dim(0);
    if (n->op == BinaryOp::floor_div && is_divided) {
      const std::optional<Dim> x = bound(sized(linear(n->a)), is_upper);
      return x ? std::optional(Dim::floor_div(*x, *divisor)) : std::nullopt;
    }
    if (n->op == BinaryOp::min || n->op == BinaryOp::max) {
      const std::optional<Dim> a = bound(sized(linear(n->a)), is_upper),
                               b = bound(sized(linear(n->b)), is_upper);
      if (a && b) return n->op == BinaryOp::min ? Dim::min(*a, *b) : Dim::max(*a, *b);
      // The smaller one of two is not above the one that is known.
      if ((n->op == BinaryOp::min) == is_upper && (a || b)) return a ? a : b;
    }
  }
  const Interval numbers = ranges_.of(atom);
  if (is_upper ? numbers.max == INT64_MAX : numbers.min == INT64_MIN) return std::nullopt;
  return Dim(is_upper ? numbers.max : numbers.min);
}

}  // namespace lathe::loop
