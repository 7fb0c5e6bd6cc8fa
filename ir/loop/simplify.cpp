// simplify_index: linear terms merged, floor_div and mod resolved by ranges.
//
// Every sum is kept as a linear form. A quotient or remainder by a constant D first splits the form
// into terms that D divides and the rest; a rest that stays within one multiple of D vanishes from
// the quotient. What is left reduces by common factors, so that (12*i + 4*j + k)//24 with k in
// [0, 4) is (3*i + j)//6. Sums that contain both x//D and x%D join again. Of symbolic
// divisors the same is proved by symbolic bounds (sized.h); others stay as they are.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/loop/linear.h"
#include "ir/loop/ranges.h"
#include "ir/loop/scalar.h"
#include "ir/loop/sized.h"

namespace lathe::loop {
namespace {

int64_t quotient(int64_t a, int64_t b) {
  return apply(BinaryOp::floor_div, DType::i64, int_scalar(a), int_scalar(b)).i;
}

int64_t remainder(int64_t a, int64_t b) {
  return apply(BinaryOp::mod, DType::i64, int_scalar(a), int_scalar(b)).i;
}

// x op D with a constant D > 0; false for anything else.
bool match_divided(Expr e, BinaryOp op, Expr& x, int64_t& divisor) {
  const auto* n = std::get_if<Binary>(&e->kind);
  if (!n || n->op != op || e->dtype != DType::i64 || e->lanes != 1) return false;
  const IntConst* c = as_int(n->b);
  if (!c || c->value <= 0) return false;
  x = n->a;
  divisor = c->value;
  return true;
}

// x op D with a D that is a number or a size, and a size at least in one of both.
std::optional<Dim> match_sized(Expr e, BinaryOp op, Expr& x) {
  const auto* n = std::get_if<Binary>(&e->kind);
  if (!n || n->op != op || e->dtype != DType::i64 || e->lanes != 1) return std::nullopt;
  x = n->a;
  return as_size(n->b);
}

// a / b, when nothing is left.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
  const Dim result = Dim::floor_div(a, b);
  return result * b == a ? std::optional(result) : std::nullopt;
}

Linear atom_form(Expr atom) { return {0, {{atom, 1}}}; }

int64_t coefficient_of(const Linear& form, Expr atom) {
  for (const auto& [term, coefficient] : form.terms)
    if (term == atom) return coefficient;
  return 0;
}

// Every term of `part`, times factor, stands in `form` with exactly that coefficient.
bool contains(const Linear& form, const Linear& part, int64_t factor) {
  return !part.terms.empty() &&
         std::all_of(part.terms.begin(), part.terms.end(), [&](const auto& term) {
           return coefficient_of(form, term.first) == term.second * factor;
         });
}

// Steps of one sum; more than any index has, so that no rule can loop.
constexpr int kMaxJoins = 64;

class Simplifier {
 public:
  Simplifier(Pool& pool, const Kernel& kernel)
      : pool_(pool), ranges_(kernel), bounds_(kernel, ranges_) {}

  Expr run(Expr root) {
    for_each(root, [&](Expr e) { done_.emplace(e.node(), simplify_node(e)); });
    return finish(done_.at(root.node()));
  }

 private:
  // Operands are simplified; those of sums are left to finish(), which sees the sum whole.
  Expr simplify_node(Expr e) {
    bool is_sum = is_linear_op(e);
    std::vector<Expr> kids = children(e);
    bool is_changed = false;
    for (Expr& kid : kids) {
      Expr mapped = done_.at(kid.node());
      if (!is_sum) mapped = finish(mapped);
      is_changed |= mapped != kid;
      kid = mapped;
    }
    Expr rebuilt = is_changed ? with_children(e, kids) : e;
    const auto* n = std::get_if<Binary>(&rebuilt->kind);
    bool is_index = n && n->a->dtype == DType::i64 && n->a->lanes == 1;
    return is_index ? simplify_binary(rebuilt, *n) : rebuilt;
  }

  Expr finish(Expr e) {
    if (!is_linear_op(e)) return e;
    auto [found, is_new] = finished_.emplace(e.node(), e);
    if (!is_new) return found->second;
    Linear form = linear(e);
    if (has_sizes(form)) form = join_sized(form);
    join(form);
    return finished_[e.node()] = to_expr(pool_, form);
  }

  Expr simplify_binary(Expr e, const Binary& n) {
    Expr x;
    int64_t divisor = 0;
    if (match_divided(e, BinaryOp::floor_div, x, divisor)) return divide(linear(x), divisor);
    if (match_divided(e, BinaryOp::mod, x, divisor)) return modulo(linear(x), divisor);
    if (const auto size = match_sized(e, BinaryOp::floor_div, x); size && !size->is_const())
      return divide(x, *size);
    if (const auto size = match_sized(e, BinaryOp::mod, x); size && !size->is_const())
      return modulo(x, *size);
    bool is_ordered = n.op == BinaryOp::min || n.op == BinaryOp::max || n.op == BinaryOp::lt ||
                      n.op == BinaryOp::le || n.op == BinaryOp::eq || n.op == BinaryOp::ne;
    if (!is_ordered) return e;
    Linear difference = linear(n.a);
    accumulate(difference, linear(n.b), -1);
    const Expr decided = decide(e, n, ranges_.of(difference));
    if (decided != e || !has_sizes(difference)) return decided;
    return decide(e, n, bounds_.range(sized(difference)));
  }

  // `gap` is the range of a - b.
  Expr decide(Expr e, const Binary& n, Interval gap) {
    bool is_apart = gap.min > 0 || gap.max < 0;
    bool is_equal = gap.min == 0 && gap.max == 0;
    switch (n.op) {
      case BinaryOp::min:
        return gap.max <= 0 ? n.a : gap.min >= 0 ? n.b : e;
      case BinaryOp::max:
        return gap.min >= 0 ? n.a : gap.max <= 0 ? n.b : e;
      case BinaryOp::lt:
        return gap.max < 0 ? pool_.boolean(true) : gap.min >= 0 ? pool_.boolean(false) : e;
      case BinaryOp::le:
        return gap.max <= 0 ? pool_.boolean(true) : gap.min > 0 ? pool_.boolean(false) : e;
      case BinaryOp::eq:
        return is_equal ? pool_.boolean(true) : is_apart ? pool_.boolean(false) : e;
      case BinaryOp::ne:
        return is_equal ? pool_.boolean(false) : is_apart ? pool_.boolean(true) : e;
      default:
        return e;
    }
  }

  // The quotient when it is the same over the whole range of the form.
  std::optional<int64_t> single_quotient(const Linear& form, int64_t divisor) {
    Interval range = ranges_.of(form);
    int64_t low = quotient(range.min, divisor);
    if (range.min > range.max || low != quotient(range.max, divisor)) return std::nullopt;
    return low;
  }

  // Splits form = g*multiple + rest with rest in [0, g), for the largest g > 1 that divides D and
  // allows it. 0 when there is none.
  int64_t split_factor(const Linear& form, int64_t divisor, Linear& multiple, Linear& rest) {
    std::vector<int64_t> factors;
    for (const auto& [atom, coefficient] : form.terms)
      factors.push_back(std::gcd(coefficient % divisor, divisor));
    std::sort(factors.rbegin(), factors.rend());
    for (int64_t g : factors) {
      if (g <= 1) break;
      multiple = {};
      rest = {form.constant, {}};
      for (const auto& term : form.terms) {
        if (term.second % g == 0) {
          multiple.terms.push_back({term.first, term.second / g});
        } else {
          rest.terms.push_back(term);
        }
      }
      std::optional<int64_t> carry = single_quotient(rest, g);
      if (!carry) continue;
      multiple.constant = *carry;
      rest.constant = wrapping_sub(rest.constant, wrapping_mul(*carry, g));
      return g;
    }
    return 0;
  }

  Expr divide(const Linear& form, int64_t divisor) {
    if (divisor == 1) return to_expr(pool_, form);
    if (auto known = single_quotient(form, divisor)) return pool_.integer(*known);
    Linear outside = {quotient(form.constant, divisor), {}};
    Linear inside = {remainder(form.constant, divisor), {}};
    for (const auto& term : form.terms) {
      if (term.second % divisor == 0) {
        outside.terms.push_back({term.first, term.second / divisor});
      } else {
        inside.terms.push_back(term);
      }
    }
    accumulate(outside, linear(divide_rest(inside, divisor)), 1);
    return to_expr(pool_, outside);
  }

  // No coefficient is a multiple of the divisor, and the constant lies in [0, divisor).
  Expr divide_rest(const Linear& form, int64_t divisor) {
    if (auto known = single_quotient(form, divisor)) return pool_.integer(*known);
    Linear multiple;
    Linear rest;
    if (int64_t g = split_factor(form, divisor, multiple, rest))
      return divide(multiple, divisor / g);
    Expr x;
    int64_t inner = 0;
    if (form.terms.size() == 1 && form.terms[0].second == 1) {
      Expr atom = form.terms[0].first;
      int64_t product = 0;
      if (match_divided(atom, BinaryOp::floor_div, x, inner) &&
          !__builtin_mul_overflow(inner, divisor, &product)) {
        Linear all = linear(x);
        all.constant = wrapping_add(all.constant, wrapping_mul(form.constant, inner));
        return divide(all, product);
      }
      if (match_divided(atom, BinaryOp::mod, x, inner) && inner % divisor == 0 &&
          form.constant == 0)
        return modulo(linear(divide(linear(x), divisor)), inner / divisor);
    }
    return floor_div(to_expr(pool_, form), pool_.integer(divisor));
  }

  Expr modulo(Linear form, int64_t divisor) {
    if (divisor == 1) return pool_.integer(0);
    if (auto same = single_quotient(form, divisor)) {
      form.constant = wrapping_sub(form.constant, wrapping_mul(*same, divisor));
      return to_expr(pool_, form);
    }
    if (strip_inner_mods(form, divisor)) return modulo(std::move(form), divisor);
    // What divide() leaves inside, so that join() sees both halves of one division. Coefficients
    // are not reduced for the same reason, unless that removes the mod.
    Linear inside = {remainder(form.constant, divisor), {}};
    Linear reduced = inside;
    for (const auto& [atom, coefficient] : form.terms) {
      if (coefficient % divisor == 0) continue;
      inside.terms.push_back({atom, coefficient});
      reduced.terms.push_back({atom, coefficient % divisor});
    }
    if (auto same = single_quotient(reduced, divisor)) {
      reduced.constant = wrapping_sub(reduced.constant, wrapping_mul(*same, divisor));
      return to_expr(pool_, reduced);
    }
    Linear multiple;
    Linear rest;
    if (int64_t g = split_factor(inside, divisor, multiple, rest)) {
      accumulate(rest, linear(modulo(multiple, divisor / g)), g);
      return to_expr(pool_, rest);
    }
    return mod(to_expr(pool_, inside), pool_.integer(divisor));
  }

  // (c*(y % m) + ...) % D with D dividing m: the inner mod does nothing.
  bool strip_inner_mods(Linear& form, int64_t divisor) {
    for (const auto& [atom, coefficient] : form.terms) {
      Expr x;
      int64_t inner = 0;
      if (!match_divided(atom, BinaryOp::mod, x, inner) || inner % divisor != 0) continue;
      int64_t factor = coefficient;
      accumulate(form, atom_form(atom), -factor);
      accumulate(form, linear(x), factor);
      return true;
    }
    return false;
  }

  // Joins x//D and x%D that stand in one sum, step by step.
  void join(Linear& form) {
    for (int step = 0; step < kMaxJoins && join_once(form); ++step) {
    }
  }

  bool join_once(Linear& form) {
    for (const auto& [atom, coefficient] : form.terms)
      if (join_term(form, atom, coefficient)) return true;  // the terms have changed
    return false;
  }

  bool join_term(Linear& form, Expr atom, int64_t coefficient) {
    Expr x;
    int64_t divisor = 0;
    if (match_divided(atom, BinaryOp::mod, x, divisor))
      return join_whole(form, atom, coefficient, x, divisor) ||
             join_digits(form, atom, coefficient, x, divisor);
    if (match_divided(atom, BinaryOp::floor_div, x, divisor))
      return join_remainder(form, atom, coefficient, x, divisor);
    return false;
  }

  // D*c*(x//D) + c*(x%D) = c*x
  bool join_whole(Linear& form, Expr atom, int64_t c, Expr x, int64_t divisor) {
    Linear whole = linear(x);
    Linear high = linear(divide(whole, divisor));
    int64_t factor = 0;
    if (__builtin_mul_overflow(divisor, c, &factor) || !contains(form, high, factor)) return false;
    accumulate(form, high, -factor);
    accumulate(form, atom_form(atom), -c);
    accumulate(form, whole, c);
    return true;
  }

  // b*c*((x//b)%a) + c*(x%b) = c*(x % (a*b))
  bool join_digits(Linear& form, Expr atom, int64_t coefficient, Expr quotient_of_x, int64_t a) {
    Expr x;
    int64_t b = 0;
    int64_t product = 0;
    if (!match_divided(quotient_of_x, BinaryOp::floor_div, x, b)) return false;
    if (coefficient % b != 0 || __builtin_mul_overflow(a, b, &product)) return false;
    int64_t c = coefficient / b;
    Linear low = linear(modulo(linear(x), b));
    if (!contains(form, low, c)) return false;
    accumulate(form, atom_form(atom), -coefficient);
    accumulate(form, low, -c);
    accumulate(form, linear(modulo(linear(x), product)), c);
    return true;
  }

  // c*x - D*c*(x//D) = c*(x%D)
  bool join_remainder(Linear& form, Expr atom, int64_t coefficient, Expr x, int64_t divisor) {
    if (coefficient % divisor != 0) return false;
    int64_t c = -(coefficient / divisor);
    Linear whole = linear(x);
    if (!contains(form, whole, c)) return false;
    accumulate(form, whole, -c);
    accumulate(form, atom_form(atom), -coefficient);
    accumulate(form, linear(modulo(whole, divisor)), c);
    return true;
  }

  // --- by sizes ---

  bool is_within(const SizedLinear& form, const Dim& divisor) {
    const auto low = bounds_.lower(form), high = bounds_.upper(form);
    return low && high && bounds_.is_never_negative(*low) &&
           bounds_.is_never_negative(divisor - Dim(1) - *high);
  }

  // form = quotient * divisor + rest, with all that the divisor divides in the quotient.
  static void split(const SizedLinear& form, const Dim& divisor, SizedLinear& multiple,
                    SizedLinear& rest) {
    for (const auto& [atom, factor] : form.terms) {
      const auto whole = divide_exactly(factor, divisor);
      (whole ? multiple : rest).terms.push_back({atom, whole ? *whole : factor});
    }
    const auto whole = divide_exactly(form.constant, divisor);
    (whole ? multiple : rest).constant = whole ? *whole : form.constant;
  }

  Expr divide(Expr x, const Dim& divisor) {
    SizedLinear multiple, rest;
    split(sized(linear(x)), divisor, multiple, rest);
    if (rest.terms.empty() && rest.constant == Dim(0)) return to_expr(pool_, multiple);
    if (is_within(rest, divisor)) return to_expr(pool_, multiple);
    Expr inner = to_expr(pool_, rest);
    Expr below;
    // (x//a)//b = x//(a*b).
    if (const auto first = match_sized(inner, BinaryOp::floor_div, below)) {
      const Dim both = *first * divisor;
      if (!both.is_too_large() && bounds_.range(*first).min.value_or(0) >= 1)
        return to_expr(pool_, multiple) + divide(below, both);
    }
    return to_expr(pool_, linear(to_expr(pool_, multiple) + floor_div(inner, pool_.size(divisor))));
  }

  Expr modulo(Expr x, const Dim& divisor) {
    SizedLinear multiple, rest;
    split(sized(linear(x)), divisor, multiple, rest);
    const Expr inner = to_expr(pool_, rest);
    return is_within(rest, divisor) ? inner : mod(inner, pool_.size(divisor));
  }

  // D*c*(x//D) + c*(x%D) = c*x, step by step; the others are joined by numbers.
  Linear join_sized(Linear form) {
    for (int step = 0; step < kMaxJoins; ++step) {
      const auto joined = join_sized_once(form);
      if (!joined) break;
      form = *joined;
    }
    return form;
  }
  std::optional<Linear> join_sized_once(const Linear& form) {
    for (const auto& [atom, c] : sized(form).terms) {
      Expr x;
      const auto divisor = match_sized(atom, BinaryOp::mod, x);
      if (!divisor) continue;
      const Expr factor = pool_.size(c), high = divide(x, *divisor) * pool_.size(*divisor * c);
      if (!contains(form, linear(high), 1)) continue;
      return linear(to_expr(pool_, form) - high - atom * factor + x * factor);
    }
    return std::nullopt;
  }

  Pool& pool_;
  Ranges ranges_;
  SizeBounds bounds_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::unordered_map<const ExprNode*, Expr> finished_;
};

}  // namespace

Expr simplify_index(Expr index, const Kernel& kernel) {
  if (!index) return index;
  return Simplifier(*index->pool, kernel).run(index);
}

}  // namespace lathe::loop
