// Canonical arithmetic of symbolic sizes.
//
// A result that overflows 64 bits, or an expression beyond kMaxSize nodes or kMaxDepth levels,
// becomes the one "too large" expression, which absorbs everything and evaluates to an error.
// A symbolic divisor is taken to be nonzero: (128*s0)//s0 = 128.
#include "ir/type/dim.h"

#include <algorithm>
#include <numeric>

#include "ir/support/hash.h"
#include "ir/type/dim_expr.h"

namespace lathe {
namespace {

constexpr int kMaxSize = 1024;
constexpr int kMaxDepth = 32;
constexpr int kMaxDivisionSteps = 64;

using Kind = DimAtom::Kind;

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int depth_of(const Dim& dim) {
  const auto* expr = DimCanonical::expr(dim);
  return expr == nullptr ? 1 : expr->depth;
}
int size_of(const Dim& dim) {
  const auto* expr = DimCanonical::expr(dim);
  return expr == nullptr ? 1 : expr->size;
}

// The greatest common divisor of all coefficients, of the constant too when asked.
int64_t content(const Dim& dim, bool with_constant) {
  const auto sum = DimCanonical::sum_of(dim);
  uint64_t divisor = 0;
  auto absorb = [&](int64_t v) {
    divisor = std::gcd(divisor, v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v));
  };
  for (const DimTerm& term : sum.terms) absorb(term.coefficient);
  if (with_constant) absorb(sum.constant);
  return divisor > static_cast<uint64_t>(INT64_MAX) ? 1 : static_cast<int64_t>(divisor);
}

// Every coefficient and the constant mapped, which must not overflow.
template <class F>
Dim map_coefficients(const Dim& dim, F f) {
  auto sum = DimCanonical::sum_of(dim);
  for (DimTerm& term : sum.terms) term.coefficient = f(term.coefficient);
  sum.constant = f(sum.constant);
  return DimCanonical::make(std::move(sum));
}

}  // namespace

bool floor_divide(int64_t a, int64_t b, int64_t* result) {
  if (a == INT64_MIN && b == -1) return false;
  *result = a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
  return true;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// --- canonical forms

Dim::Expr DimCanonical::sum_of(const Dim& dim) {
  if (dim.expr_ != nullptr) return *dim.expr_;
  Dim::Expr sum;
  sum.constant = dim.value_;
  return sum;
}

Dim DimCanonical::too_large() {
  Dim dim;
  Dim::Expr expr;
  expr.is_too_large = true;
  dim.expr_ = std::make_shared<const Dim::Expr>(std::move(expr));
  return dim;
}

Dim DimCanonical::make(Dim::Expr sum) {
  if (sum.is_too_large) return too_large();
  std::sort(sum.terms.begin(), sum.terms.end(),
            [](const DimTerm& a, const DimTerm& b) { return compare(a.factors, b.factors) < 0; });
  std::vector<DimTerm> merged;
  for (DimTerm& term : sum.terms) {
    if (merged.empty() || compare(merged.back().factors, term.factors) != 0)
      merged.push_back(std::move(term));
    else if (__builtin_add_overflow(merged.back().coefficient, term.coefficient,
                                    &merged.back().coefficient))
      return too_large();
    if (merged.back().coefficient == 0) merged.pop_back();
  }
  sum.terms = std::move(merged);
  if (sum.terms.empty()) return sum.constant;
  sum.size = 1;
  sum.depth = 1;
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(sum.constant));
  for (const DimTerm& term : sum.terms) {
    hasher.add(static_cast<uint64_t>(term.coefficient));
    for (const DimAtomPtr& atom : term.factors) {
      ++sum.size;
      hasher.add(static_cast<uint64_t>(atom->kind)).add(atom->name);
      for (const Dim& arg : atom->args) {
        hasher.add(arg.hash());
        sum.size += size_of(arg);
        sum.depth = std::max(sum.depth, depth_of(arg) + 1);
      }
    }
  }
  if (sum.size > kMaxSize || sum.depth > kMaxDepth) return too_large();
  sum.hash = hasher.value();
  Dim dim;
  dim.expr_ = std::make_shared<const Dim::Expr>(std::move(sum));
  return dim;
}

Dim DimCanonical::from_atom(DimAtom atom) {
  for (const Dim& arg : atom.args)
    if (is_too_large(arg)) return too_large();
  Dim::Expr sum;
  sum.terms.push_back({1, {std::make_shared<const DimAtom>(std::move(atom))}});
  return make(std::move(sum));
}

const DimAtom* DimCanonical::as_atom(const Dim& dim) {
  const Dim::Expr* sum = dim.expr_.get();
  if (sum == nullptr || sum->is_too_large || sum->constant != 0 || sum->terms.size() != 1)
    return nullptr;
  const DimTerm& term = sum->terms.front();
  return term.coefficient == 1 && term.factors.size() == 1 ? term.factors.front().get() : nullptr;
}

// --- order

int DimCanonical::compare(const DimAtomPtr& a, const DimAtomPtr& b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return three_way(a->kind, b->kind);
  if (int order = a->name.compare(b->name); order != 0) return order;
  if (a->args.size() != b->args.size()) return three_way(a->args.size(), b->args.size());
  for (size_t i = 0; i < a->args.size(); ++i)
    if (int order = compare(a->args[i], b->args[i]); order != 0) return order;
  return 0;
}

int DimCanonical::compare(const std::vector<DimAtomPtr>& a, const std::vector<DimAtomPtr>& b) {
  if (a.size() != b.size()) return three_way(b.size(), a.size());
  for (size_t i = 0; i < a.size(); ++i)
    if (int order = compare(a[i], b[i]); order != 0) return order;
  return 0;
}

int DimCanonical::compare(const Dim& a, const Dim& b) {
  if (a.expr_ == b.expr_) return three_way(a.value_, b.value_);
  if (!a.expr_ || !b.expr_) return a.expr_ ? 1 : -1;  // constants first
  const Dim::Expr& x = *a.expr_;
  const Dim::Expr& y = *b.expr_;
  if (x.is_too_large != y.is_too_large) return x.is_too_large ? 1 : -1;
  if (x.terms.size() != y.terms.size()) return three_way(x.terms.size(), y.terms.size());
  for (size_t i = 0; i < x.terms.size(); ++i) {
    if (int order = compare(x.terms[i].factors, y.terms[i].factors); order != 0) return order;
    if (x.terms[i].coefficient != y.terms[i].coefficient)
      return three_way(x.terms[i].coefficient, y.terms[i].coefficient);
  }
  return three_way(x.constant, y.constant);
}

// --- arithmetic

Dim Dim::symbol(std::string name) {
  return DimCanonical::from_atom({DimAtom::Kind::symbol, std::move(name), {}});
}

Dim operator+(const Dim& a, const Dim& b) {
  int64_t constant = 0;
  if (a.is_const() && b.is_const()) {
    if (__builtin_add_overflow(a.value_, b.value_, &constant)) return DimCanonical::too_large();
    return constant;
  }
  Dim::Expr sum = DimCanonical::sum_of(a);
  const Dim::Expr other = DimCanonical::sum_of(b);
  sum.is_too_large |= other.is_too_large;
  sum.is_too_large |= __builtin_add_overflow(sum.constant, other.constant, &sum.constant);
  sum.terms.insert(sum.terms.end(), other.terms.begin(), other.terms.end());
  return DimCanonical::make(std::move(sum));
}

Dim operator-(const Dim& a, const Dim& b) { return a + Dim(-1) * b; }

Dim operator*(const Dim& a, const Dim& b) {
  int64_t constant = 0;
  if (a.is_const() && b.is_const()) {
    if (__builtin_mul_overflow(a.value_, b.value_, &constant)) return DimCanonical::too_large();
    return constant;
  }
  const Dim::Expr left = DimCanonical::sum_of(a);
  const Dim::Expr right = DimCanonical::sum_of(b);
  Dim::Expr product;
  product.is_too_large = left.is_too_large || right.is_too_large ||
                         left.terms.size() * right.terms.size() > static_cast<size_t>(kMaxSize) ||
                         __builtin_mul_overflow(left.constant, right.constant, &product.constant);
  if (product.is_too_large) return DimCanonical::too_large();
  auto append = [&](const DimTerm& term, int64_t factor, const std::vector<DimAtomPtr>& more) {
    DimTerm result = term;
    product.is_too_large |= __builtin_mul_overflow(term.coefficient, factor, &result.coefficient);
    result.factors.insert(result.factors.end(), more.begin(), more.end());
    std::sort(
        result.factors.begin(), result.factors.end(),
        [](const DimAtomPtr& x, const DimAtomPtr& y) { return DimCanonical::compare(x, y) < 0; });
    if (result.coefficient != 0) product.terms.push_back(std::move(result));
  };
  for (const DimTerm& x : left.terms) {
    append(x, right.constant, {});
    for (const DimTerm& y : right.terms) append(x, y.coefficient, y.factors);
  }
  for (const DimTerm& y : right.terms) append(y, left.constant, {});
  return DimCanonical::make(std::move(product));
}

std::optional<Dim> DimCanonical::divide_exactly(const Dim& a, const Dim& b) {
  // Division of polynomials by the leading term; compare() is a monomial order (graded lex).
  const Dim::Expr divisor = sum_of(b);
  const DimTerm lead =
      divisor.terms.empty() ? DimTerm{divisor.constant, {}} : divisor.terms.front();
  if (lead.coefficient == 0) return std::nullopt;
  Dim quotient = 0;
  Dim rest = a;
  for (int step = 0; step < kMaxDivisionSteps; ++step) {
    if (is_too_large(rest) || is_too_large(quotient)) return std::nullopt;
    if (rest == Dim(0)) return quotient;
    const Dim::Expr sum = sum_of(rest);
    const DimTerm head = sum.terms.empty() ? DimTerm{sum.constant, {}} : sum.terms.front();
    DimTerm factor;
    if (head.coefficient == INT64_MIN || head.coefficient % lead.coefficient != 0)
      return std::nullopt;
    factor.coefficient = head.coefficient / lead.coefficient;
    size_t used = 0;  // of lead's factors, which must be a sub-multiset of head's
    for (const DimAtomPtr& atom : head.factors) {
      if (used < lead.factors.size() && compare(lead.factors[used], atom) == 0)
        ++used;
      else
        factor.factors.push_back(atom);
    }
    if (used != lead.factors.size()) return std::nullopt;
    Dim part = factor.coefficient;
    if (!factor.factors.empty()) {
      Dim::Expr single;
      single.terms.push_back(factor);
      part = make(std::move(single));
    }
    quotient = quotient + part;
    rest = rest - part * b;
  }
  return std::nullopt;
}

Dim DimCanonical::floor_div_by(const Dim& a, int64_t divisor) {
  // (d*q + r)//d = q + r//d, for every integer q: take out all terms that d divides.
  const Dim::Expr sum = sum_of(a);
  Dim::Expr whole;
  Dim::Expr rest;
  floor_divide(sum.constant, divisor, &whole.constant);
  rest.constant = floor_modulo(sum.constant, divisor);
  for (const DimTerm& term : sum.terms) {
    if (term.coefficient % divisor == 0)
      whole.terms.push_back({term.coefficient / divisor, term.factors});
    else
      rest.terms.push_back(term);
  }
  const Dim quotient = make(std::move(whole));
  if (rest.terms.empty()) return quotient;  // 0 <= rest.constant < divisor
  // (g*x + c)//(g*d) = (x + c//g)//d.
  Dim inner = make(std::move(rest));
  const int64_t common = std::gcd(content(inner, false), divisor);
  inner = map_coefficients(inner, [&](int64_t v) { return v / common; });
  divisor /= common;
  if (divisor == 1) return quotient + inner;
  // (x//a + c)//b = (x + a*c)//(a*b): sizes of images that are halved again and again stay short.
  const Dim offset = sum_of(inner).constant;
  if (const DimAtom* atom = as_atom(inner - offset);
      atom != nullptr && atom->kind == Kind::floor_div) {
    int64_t product = 0;
    const Dim& by = atom->args[1];
    const Dim all = atom->args[0] + by * offset;
    if (by.is_const() && by.value() > 0 && !is_too_large(all) &&
        !__builtin_mul_overflow(by.value(), divisor, &product))
      return quotient + Dim::floor_div(all, product);
  }
  return quotient + from_atom({Kind::floor_div, "", {inner, divisor}});
}

Dim Dim::floor_div(const Dim& a, const Dim& b) {
  if (DimCanonical::is_too_large(a) || DimCanonical::is_too_large(b))
    return DimCanonical::too_large();
  if (b.is_const()) {
    int64_t result = 0;
    if (b.value_ == 0) return 0;
    if (b.value_ == 1) return a;
    if (a.is_const())
      return floor_divide(a.value_, b.value_, &result) ? Dim(result) : DimCanonical::too_large();
    if (b.value_ == INT64_MIN) return DimCanonical::too_large();
    if (b.value_ < 0) return floor_div(Dim(-1) * a, -b.value_);
    return DimCanonical::floor_div_by(a, b.value_);
  }
  if (auto quotient = DimCanonical::divide_exactly(a, b)) return *quotient;
  return DimCanonical::from_atom({DimAtom::Kind::floor_div, "", {a, b}});
}

Dim DimCanonical::mod_by(Dim a, int64_t divisor) {
  a = map_coefficients(a, [&](int64_t v) { return floor_modulo(v, divisor); });
  if (a.is_const()) return a;
  // (g*x) % (g*d) = g*(x % d).
  const int64_t common = std::gcd(content(a, true), divisor);
  a = map_coefficients(a, [&](int64_t v) { return v / common; });
  divisor /= common;
  if (divisor == 1) return 0;
  // (x % (k*d)) % d = x % d.
  if (const DimAtom* atom = as_atom(a); atom != nullptr && atom->kind == Kind::mod) {
    const Dim& by = atom->args[1];
    if (by.is_const() && by.value() % divisor == 0)
      return Dim(common) * Dim::mod(atom->args[0], divisor);
  }
  return Dim(common) * from_atom({Kind::mod, "", {a, divisor}});
}

Dim Dim::mod(const Dim& a, const Dim& b) {
  if (DimCanonical::is_too_large(a) || DimCanonical::is_too_large(b))
    return DimCanonical::too_large();
  if (b.is_const()) {
    if (b.value_ == 0) return 0;
    if (a.is_const()) return floor_modulo(a.value_, b.value_);
    if (b.value_ == INT64_MIN) return DimCanonical::too_large();
    if (b.value_ == 1 || b.value_ == -1) return 0;
    if (b.value_ < 0) return Dim(-1) * mod(Dim(-1) * a, -b.value_);
    return DimCanonical::mod_by(a, b.value_);
  }
  if (DimCanonical::divide_exactly(a, b)) return 0;
  return DimCanonical::from_atom({DimAtom::Kind::mod, "", {a, b}});
}

Dim DimCanonical::extremum(DimAtom::Kind kind, const Dim& a, const Dim& b) {
  if (is_too_large(a) || is_too_large(b)) return too_large();
  const auto parts = [&](const Dim& dim) {
    const DimAtom* atom = as_atom(dim);
    return atom != nullptr && atom->kind == kind ? atom->args : std::vector<Dim>{dim};
  };
  // Of two arguments with a constant difference one always wins. Those of `a` have none among
  // themselves.
  std::vector<Dim> args = parts(a);
  for (const Dim& candidate : parts(b)) {
    bool is_new = true;
    for (Dim& kept : args) {
      const Dim difference = candidate - kept;
      if (!difference.is_const()) continue;
      if ((difference.value() > 0) == (kind == Kind::max)) kept = candidate;
      is_new = false;
      break;
    }
    if (is_new) args.push_back(candidate);
  }
  if (args.size() == 1) return args.front();
  std::sort(args.begin(), args.end(), [](const Dim& x, const Dim& y) { return compare(x, y) < 0; });
  return from_atom({kind, "", std::move(args)});
}

Dim Dim::max(const Dim& a, const Dim& b) {
  return DimCanonical::extremum(DimAtom::Kind::max, a, b);
}
Dim Dim::min(const Dim& a, const Dim& b) {
  return DimCanonical::extremum(DimAtom::Kind::min, a, b);
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.expr_ == b.expr_) return a.value_ == b.value_;
  if (!a.expr_ || !b.expr_ || a.expr_->hash != b.expr_->hash) return false;
  return DimCanonical::compare(a, b) == 0;
}

bool Dim::is_too_large() const { return expr_ != nullptr && expr_->is_too_large; }

uint64_t Dim::hash() const {
  return expr_ ? expr_->hash : Hasher().add(static_cast<uint64_t>(value_)).value();
}

std::string Dim::symbol_name() const {
  const DimAtom* atom = DimCanonical::as_atom(*this);
  return atom != nullptr && atom->kind == DimAtom::Kind::symbol ? atom->name : "";
}

std::vector<std::pair<Dim, int64_t>> Dim::monomials() const {
  if (is_too_large()) return {{*this, 1}};
  std::vector<std::pair<Dim, int64_t>> parts;
  const Expr sum = DimCanonical::sum_of(*this);
  for (const DimTerm& term : sum.terms) {
    Expr single;
    single.terms.push_back({1, term.factors});
    parts.emplace_back(DimCanonical::make(std::move(single)), term.coefficient);
  }
  if (sum.constant != 0) parts.emplace_back(Dim(1), sum.constant);
  return parts;
}

void Dim::collect_symbols(std::vector<std::string>& names) const {
  if (!expr_) return;
  for (const DimTerm& term : expr_->terms) {
    for (const DimAtomPtr& atom : term.factors) {
      if (atom->kind == DimAtom::Kind::symbol &&
          std::find(names.begin(), names.end(), atom->name) == names.end())
        names.push_back(atom->name);
      for (const Dim& arg : atom->args) arg.collect_symbols(names);
    }
  }
}

}  // namespace lathe
