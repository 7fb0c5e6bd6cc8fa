// Deciding comparisons of sizes.
//
// A comparison is a question about the sign of the difference. It is answered by the bounds of that
// difference, by those of what is left after an expression known not to be negative is taken off,
// by cases of Max and Min, and with floor_div(a, n) as (a - mod(a, n)) / n. All of this is sound
// and none of it complete: what is not decided stays a guard, which costs a comparison when sizes
// are bound. Texts may hold guards without end: facts and the work of a search are limited.
#include "ir/type/size_facts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "ir/type/dim_expr.h"

namespace lathe {
namespace {

using Kind = DimAtom::Kind;

constexpr size_t kMostFacts = 128;  // of each kind
constexpr int kMostWork = 4096;     // nodes of expressions that a search looks at
constexpr size_t kMostTerms = 16;   // that are tried one by one

Dim negated(const Dim& dim) { return Dim(-1) * dim; }

bool is_at_least_zero(const DimRange& range) { return range.min && *range.min >= 0; }

Dim as_dim(const DimTerm& term) {
  auto sum = DimCanonical::sum_of(0);
  sum.terms.push_back(term);
  return DimCanonical::make(std::move(sum));
}

// Nodes of an expression.
int size_of(const Dim& dim) {
  const auto* sum = DimCanonical::expr(dim);
  return sum == nullptr ? 1 : sum->size;
}

// Those that are worth to be tried one by one.
std::vector<DimTerm> first_terms(const Dim& dim) {
  std::vector<DimTerm> terms = DimCanonical::sum_of(dim).terms;
  if (terms.size() > kMostTerms) terms.resize(kMostTerms);
  return terms;
}

uint64_t magnitude(int64_t v) {
  return v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v);
}

// What divides every coefficient, the constant left aside; 0 without terms.
uint64_t common_factor(const std::vector<DimTerm>& terms) {
  uint64_t factor = 0;
  for (const DimTerm& term : terms) factor = std::gcd(factor, magnitude(term.coefficient));
  return factor;
}

// A symbol that stands by itself in an expression which is 0, and what it then is.
std::optional<std::pair<std::string, Dim>> solve(const Dim& zero) {
  for (const DimTerm& term : first_terms(zero)) {
    if (term.factors.size() != 1 || term.factors[0]->kind != Kind::symbol ||
        magnitude(term.coefficient) != 1)
      continue;
    const std::string& symbol = term.factors[0]->name;
    const Dim rest = zero - as_dim(term);
    std::vector<std::string> others;
    rest.collect_symbols(others);
    if (std::find(others.begin(), others.end(), symbol) != others.end()) continue;
    const Dim value = term.coefficient == 1 ? negated(rest) : rest;
    if (!value.is_too_large()) return std::pair(symbol, value);
  }
  return std::nullopt;
}

std::string spell(const std::string& symbol, const DimRange& range) {
  if (range.min && range.max) return fmt::format("{} <= {} <= {}", *range.min, symbol, *range.max);
  if (range.min) return fmt::format("{} <= {}", *range.min, symbol);
  return range.max ? fmt::format("{} <= {}", symbol, *range.max) : symbol;
}

std::vector<std::string> symbols_of(const Guard& guard) {
  std::vector<std::string> symbols;
  guard.left.collect_symbols(symbols);
  guard.right.collect_symbols(symbols);
  return symbols;
}

}  // namespace

SizeFacts::SizeFacts(std::map<std::string, DimRange> ranges, std::map<std::string, int64_t> hints)
    : given_(std::move(ranges)), ranges_(given_), hints_(std::move(hints)) {
  for (const auto& [symbol, range] : given_)
    if (range.min && range.max && *range.min == *range.max)
      assume_zero(Dim::symbol(symbol) - *range.min);
}

// --- what follows

DimRange SizeFacts::bounds(const Dim& dim) const {
  const DimRange as_written = dim.bounds(ranges_);
  DimRange range = dim.substitute(solved_).bounds(ranges_);
  if (as_written.min && (!range.min || *range.min < *as_written.min)) range.min = as_written.min;
  if (as_written.max && (!range.max || *range.max > *as_written.max)) range.max = as_written.max;
  return range;
}

bool SizeFacts::is_never_negative(const Dim& dim, int& work) const {
  work -= size_of(dim);
  if (work < 0 || dim.is_too_large()) return false;
  if (is_at_least_zero(dim.bounds(ranges_))) return true;
  for (const Dim& known : never_negative_) {
    work -= size_of(dim) + size_of(known);
    if (work < 0) return false;
    if (is_at_least_zero((dim - known).bounds(ranges_))) return true;
  }
  for (const DimTerm& term : first_terms(dim)) {
    if (term.factors.size() != 1) continue;
    const DimAtom& atom = *term.factors[0];
    const Dim factor = term.coefficient, rest = dim - as_dim(term);
    if (atom.kind == Kind::max || atom.kind == Kind::min) {
      const auto holds = [&](const Dim& arg) {
        return is_never_negative(rest + factor * arg, work);
      };
      // The least of the cases decides, or the greatest, for which one case is enough.
      const bool needs_all = (term.coefficient > 0) == (atom.kind == Kind::min);
      if (needs_all ? std::all_of(atom.args.begin(), atom.args.end(), holds)
                    : std::any_of(atom.args.begin(), atom.args.end(), holds))
        return true;
    } else if (atom.kind == Kind::floor_div && atom.args[1].is_const() &&
               atom.args[1].value() > 0) {
      const Dim whole = atom.args[0] - Dim::mod(atom.args[0], atom.args[1]);
      if (is_never_negative(atom.args[1] * rest + factor * whole, work)) return true;
    }
  }
  return false;
}

bool SizeFacts::is_never_negative(const Dim& dim) const {
  int work = kMostWork;
  return is_at_least_zero(dim.bounds(ranges_)) || is_never_negative(dim.substitute(solved_), work);
}

bool SizeFacts::is_never_zero(const Dim& dim) const {
  const Dim reduced = dim.substitute(solved_);
  if (reduced.is_too_large()) return false;
  if (reduced.is_const()) return reduced.value() != 0;
  const auto sum = DimCanonical::sum_of(reduced);
  if (magnitude(sum.constant) % common_factor(sum.terms) != 0) return true;
  return std::any_of(never_zero_.begin(), never_zero_.end(), [&](const Dim& known) {
    return known == reduced || known == negated(reduced);
  });
}

// s1*Min(1, s0) is s1 where s0 is known to be 1 at least. A sum is searched by cases instead.
Dim SizeFacts::with_chosen_extremes(const Dim& dim) const {
  const auto is_extreme = [](const DimAtomPtr& factor) {
    return factor->kind == Kind::max || factor->kind == Kind::min;
  };
  const auto is_product = [&](const DimTerm& term) {
    return term.factors.size() > 1 &&
           std::any_of(term.factors.begin(), term.factors.end(), is_extreme);
  };
  const std::vector<DimTerm> terms = first_terms(dim);
  if (dim.is_too_large() || std::none_of(terms.begin(), terms.end(), is_product)) return dim;
  Dim result = dim;
  for (const DimTerm& term : terms) {
    if (!is_product(term)) continue;
    Dim product = term.coefficient;
    for (const DimAtomPtr& factor : term.factors) {
      Dim chosen = as_dim({1, {factor}});
      for (const Dim& arg : is_extreme(factor) ? factor->args : std::vector<Dim>{}) {
        const bool is_one =
            std::all_of(factor->args.begin(), factor->args.end(), [&](const Dim& other) {
              return is_never_negative(factor->kind == Kind::min ? other - arg : arg - other);
            });
        if (is_one) chosen = arg;
      }
      product = product * chosen;
    }
    result = result - as_dim(term) + product;
  }
  return result;
}

std::optional<bool> SizeFacts::decide(Relation relation, const Dim& left, const Dim& right) const {
  const Guard guard{left, relation, right};
  if (left.is_const() && right.is_const()) return lathe::decide(guard, {});
  const Dim gap = with_chosen_extremes(left - right), back = negated(gap);
  const auto is_positive = [&](const Dim& dim) {
    return is_never_negative(dim - 1) || (is_never_negative(dim) && is_never_zero(dim));
  };
  const auto among = [](bool holds, bool fails) {
    return holds ? std::optional(true) : fails ? std::optional(false) : std::nullopt;
  };
  const auto is_equal = [&] { return is_never_negative(gap) && is_never_negative(back); };
  const auto is_other = [&] { return is_never_zero(gap) || is_positive(gap) || is_positive(back); };
  switch (relation) {
    case Relation::eq:
      return among(is_equal(), is_other());
    case Relation::ne:
      return among(is_other(), is_equal());
    case Relation::lt:
      return among(is_positive(back), is_never_negative(gap));
    case Relation::le:
      return among(is_never_negative(back), is_positive(gap));
    case Relation::gt:
      return among(is_positive(gap), is_never_negative(back));
    case Relation::ge:
      return among(is_never_negative(gap), is_positive(back));
  }
  return std::nullopt;
}

// --- new facts

Diag SizeFacts::contradiction(const Guard& guard) const {
  std::string where, beside;
  const std::vector<std::string> symbols = symbols_of(guard);
  for (const std::string& symbol : symbols) {
    const auto found = given_.find(symbol);
    if (found == given_.end() || (!found->second.min && !found->second.max)) continue;
    where += fmt::format("{}{}", where.empty() ? " in the specified range " : " and ",
                         spell(symbol, found->second));
  }
  for (const Guard& other : guards_) {
    const std::vector<std::string> others = symbols_of(other);
    const bool is_near = std::any_of(others.begin(), others.end(), [&](const std::string& symbol) {
      return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
    });
    if (is_near && beside.size() < 200)
      beside += fmt::format("{}{}", beside.empty() ? " beside " : ", ", to_string(other));
  }
  const std::string who = symbols.empty() ? "nothing satisfies"
                          : symbols.size() == 1
                              ? fmt::format("no {}{} satisfies", symbols[0], where)
                              : fmt::format("no {}{} satisfy", fmt::join(symbols, ", "), where);
  return Diag{code::kShapeMismatch, guard.loc,
              fmt::format("{}{}{} {}{}", guard.cause, guard.cause.empty() ? "" : ": ", who,
                          to_string(guard), beside)};
}

Status SizeFacts::require(Guard guard) {
  const Dim gap = guard.left - guard.right;
  if (gap.is_too_large() && !(guard.left.is_const() && guard.right.is_const()))
    return Diag{code::kTooLarge, guard.loc,
                fmt::format("the guard '{}' overflows 64 bits", to_string(guard))};
  const std::optional<bool> verdict = decide(guard.relation, guard.left, guard.right);
  if (verdict == true) return Ok{};
  if (verdict == false) return contradiction(guard);
  LATHE_DO(check_guards({guard}, {hints_.begin(), hints_.end()}));
  if (!texts_.insert(to_string(guard)).second) return Ok{};
  assume(guard);
  if (is_impossible_) return contradiction(guard);
  guards_.push_back(std::move(guard));
  return Ok{};
}

void SizeFacts::assume(const Guard& guard) {
  const Dim gap = (guard.left - guard.right).substitute(solved_);
  switch (guard.relation) {
    case Relation::eq:
      return assume_zero(gap);
    case Relation::ne:
      if (never_zero_.size() < kMostFacts && !gap.is_too_large()) never_zero_.push_back(gap);
      return;
    case Relation::lt:
      return assume_not_negative(negated(gap) - 1);
    case Relation::le:
      return assume_not_negative(negated(gap));
    case Relation::gt:
      return assume_not_negative(gap - 1);
    case Relation::ge:
      return assume_not_negative(gap);
  }
}

// mod(e, n) = r, as e = n*k + r for a new k.
bool SizeFacts::solve_remainder(const Dim& dim) {
  const auto sum = DimCanonical::sum_of(dim);
  if (sum.terms.size() != 1 || sum.terms[0].factors.size() != 1) return false;
  const DimAtom& atom = *sum.terms[0].factors[0];
  if (atom.kind != Kind::mod || !atom.args[1].is_const() || atom.args[1].value() < 2) return false;
  const int64_t divisor = atom.args[1].value();
  const uint64_t factor = magnitude(sum.terms[0].coefficient);
  if (magnitude(sum.constant) % factor != 0) return false;
  const Dim rest = sum.terms[0].coefficient < 0 ? Dim(sum.constant) : negated(sum.constant);
  const Dim remainder = Dim::floor_div(rest, static_cast<int64_t>(factor));
  if (!remainder.is_const() || remainder.value() < 0 || remainder.value() >= divisor) return false;
  // No text spells such a symbol.
  const std::string quotient = fmt::format("({})/{}", atom.args[0].str(), divisor);
  const Dim zero = atom.args[0] - remainder - Dim(divisor) * Dim::symbol(quotient);
  if (!solve(zero)) return false;
  ranges_[quotient] = Dim::floor_div(atom.args[0], divisor).bounds(ranges_);
  assume_zero(zero);
  return true;
}

void SizeFacts::assume_zero(const Dim& dim) {
  if (dim.is_too_large() || solved_.size() >= kMostFacts) return;
  if (dim.is_const()) {
    is_impossible_ = is_impossible_ || dim.value() != 0;
    return;
  }
  if (solve_remainder(dim)) return;
  const auto solution = solve(dim);
  if (!solution) {
    assume_not_negative(dim);
    assume_not_negative(negated(dim));
    return;
  }
  const std::string symbol = solution->first;
  const Dim value = solution->second;
  const std::map<std::string, Dim> replaced = {{symbol, value}};
  for (auto& [known, meaning] : solved_) meaning = meaning.substitute(replaced);
  for (Dim& known : never_zero_) known = known.substitute(replaced);
  solved_.emplace(symbol, value);
  // Of fewer symbols, facts may narrow more.
  for (const Dim& known : std::exchange(never_negative_, {})) assume_not_negative(known);
  const auto range = ranges_.find(symbol);
  if (range == ranges_.end()) return;
  const DimRange of_symbol = range->second;
  if (of_symbol.min) assume_not_negative(value - *of_symbol.min);
  if (of_symbol.max) assume_not_negative(Dim(*of_symbol.max) - value);
}

void SizeFacts::assume_not_negative(const Dim& given) {
  const Dim dim = given.substitute(solved_);
  if (dim.is_too_large() || is_never_negative(dim)) return;
  const DimRange range = bounds(dim);
  if (range.max && *range.max < 0) is_impossible_ = true;
  if (is_impossible_ || never_negative_.size() >= kMostFacts) return;
  never_negative_.push_back(dim);
  for (const DimTerm& term : first_terms(dim)) {
    if (term.factors.size() != 1 || term.factors[0]->kind != Kind::symbol) continue;
    const DimRange rest = (dim - as_dim(term)).bounds(ranges_);
    if (rest.max) narrow(term.factors[0]->name, term.coefficient, *rest.max);
  }
}

// From factor * symbol + rest >= 0.
void SizeFacts::narrow(const std::string& symbol, int64_t factor, int64_t rest) {
  int64_t limit = 0;
  if (factor == INT64_MIN || !floor_divide(rest, factor < 0 ? -factor : factor, &limit) ||
      limit == INT64_MIN)
    return;
  DimRange& range = ranges_[symbol];
  if (factor > 0 && (!range.min || *range.min < -limit)) range.min = -limit;
  if (factor < 0 && (!range.max || *range.max > limit)) range.max = limit;
  if (!range.min || !range.max) return;
  if (*range.min > *range.max) is_impossible_ = true;
  if (*range.min == *range.max && solved_.count(symbol) == 0)
    assume_zero(Dim::symbol(symbol) - *range.min);
}

}  // namespace lathe
