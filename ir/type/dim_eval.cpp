// Values, substitution and bounds of symbolic sizes.
#include <fmt/format.h>

#include <algorithm>

#include "ir/support/diag_codes.h"
#include "ir/type/dim.h"
#include "ir/type/dim_expr.h"

namespace lathe {
namespace {

using Kind = DimAtom::Kind;

constexpr size_t kMostUnsorted = 4096;  // terms of a sum

Diag overflow_error() {
  return Diag{code::kTooLarge, Loc::unknown(), "a size expression overflows 64 bits"};
}

Result<int64_t> evaluate_atom(const DimAtom& atom, const std::map<std::string, int64_t>& symbols) {
  if (atom.kind == Kind::symbol) {
    const auto found = symbols.find(atom.name);
    if (found != symbols.end()) return found->second;
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("the symbolic size '{}' has no value", atom.name)};
  }
  LATHE_TRY(int64_t value, atom.args[0].evaluate(symbols));
  for (size_t i = 1; i < atom.args.size(); ++i) {
    LATHE_TRY(const int64_t other, atom.args[i].evaluate(symbols));
    if (atom.kind == Kind::max)
      value = std::max(value, other);
    else if (atom.kind == Kind::min)
      value = std::min(value, other);
    else if (other == 0)
      value = 0;
    else if (atom.kind == Kind::mod)
      value = floor_modulo(value, other);
    else if (!floor_divide(value, other, &value))
      return overflow_error();
  }
  return value;
}

// A bound in arithmetic that cannot overflow; what leaves int64 counts as infinite.
using Wide = __int128;
constexpr Wide kInfinity = Wide{1} << 100;

Wide clamp(Wide v) {
  if (v > INT64_MAX) return kInfinity;
  if (v < INT64_MIN) return -kInfinity;
  return v;
}

Wide multiply(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  const bool is_infinite = a == kInfinity || a == -kInfinity || b == kInfinity || b == -kInfinity;
  if (is_infinite) return (a < 0) == (b < 0) ? kInfinity : -kInfinity;
  return clamp(a * b);
}

// floor(a / b) for b > 0; infinite bounds divide to their limit.
Wide floor_divide_bound(Wide a, Wide b) {
  if (a == kInfinity || a == -kInfinity) return a;
  if (b == kInfinity) return a < 0 ? -1 : 0;
  return a / b - (a % b != 0 && a < 0 ? 1 : 0);
}

struct Interval {
  Wide low = -kInfinity;
  Wide high = kInfinity;
};

Interval operator*(const Interval& a, const Interval& b) {
  const Wide corners[] = {multiply(a.low, b.low), multiply(a.low, b.high), multiply(a.high, b.low),
                          multiply(a.high, b.high)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

Interval add(const Interval& a, const Interval& b) {
  // -inf + inf never meets: low bounds are below +inf and high ones above -inf.
  return {clamp(a.low + b.low), clamp(a.high + b.high)};
}

using Ranges = std::map<std::string, DimRange>;
Interval interval_of(const Dim& dim, const Ranges& ranges);

Interval interval_of(const DimAtom& atom, const Ranges& ranges) {
  Interval result;
  if (atom.kind == Kind::symbol) {
    const auto found = ranges.find(atom.name);
    if (found == ranges.end()) return result;
    if (found->second.min) result.low = *found->second.min;
    if (found->second.max) result.high = *found->second.max;
    return result;
  }
  result = interval_of(atom.args[0], ranges);
  for (size_t i = 1; i < atom.args.size(); ++i) {
    const Interval other = interval_of(atom.args[i], ranges);
    if (atom.kind == Kind::max) {
      result = {std::max(result.low, other.low), std::max(result.high, other.high)};
    } else if (atom.kind == Kind::min) {
      result = {std::min(result.low, other.low), std::min(result.high, other.high)};
    } else if (other.low < 1) {
      result = {};
    } else if (atom.kind == Kind::floor_div) {
      result = {floor_divide_bound(result.low, result.low >= 0 ? other.high : other.low),
                floor_divide_bound(result.high, result.high >= 0 ? other.low : other.high)};
    } else if (result.low < 0 || result.high >= other.low) {  // else mod changes nothing
      const Wide largest = other.high == kInfinity ? kInfinity : other.high - 1;
      result = {0, result.low >= 0 ? std::min(largest, result.high) : largest};
    }
  }
  return result;
}

Interval interval_of(const Dim& dim, const Ranges& ranges) {
  if (dim.is_too_large()) return {};
  const auto sum = DimCanonical::sum_of(dim);
  Interval total = {sum.constant, sum.constant};
  for (const DimTerm& term : sum.terms) {
    Interval product = {term.coefficient, term.coefficient};
    for (const DimAtomPtr& atom : term.factors) product = product * interval_of(*atom, ranges);
    total = add(total, product);
  }
  return total;
}

}  // namespace

Result<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& symbols) const {
  if (!expr_) return value_;
  if (expr_->is_too_large) return overflow_error();
  int64_t total = expr_->constant;
  for (const DimTerm& term : expr_->terms) {
    int64_t product = term.coefficient;
    for (const DimAtomPtr& atom : term.factors) {
      LATHE_TRY(const int64_t value, evaluate_atom(*atom, symbols));
      if (__builtin_mul_overflow(product, value, &product)) return overflow_error();
    }
    if (__builtin_add_overflow(total, product, &total)) return overflow_error();
  }
  return total;
}

Dim DimCanonical::apply(Kind kind, const Dim& a, const Dim& b) {
  return kind == Kind::floor_div ? Dim::floor_div(a, b)
         : kind == Kind::mod     ? Dim::mod(a, b)
         : kind == Kind::max     ? Dim::max(a, b)
                                 : Dim::min(a, b);
}

Dim Dim::substitute(const std::map<std::string, Dim>& symbols) const {
  if (!expr_ || expr_->is_too_large) return *this;
  auto substitute_atom = [&](const DimAtomPtr& atom) -> Dim {
    if (atom->kind == Kind::symbol) {
      const auto found = symbols.find(atom->name);
      return found == symbols.end() ? symbol(atom->name) : found->second;
    }
    Dim result = atom->args[0].substitute(symbols);
    for (size_t i = 1; i < atom->args.size(); ++i) {
      result = DimCanonical::apply(atom->kind, result, atom->args[i].substitute(symbols));
    }
    return result;
  };
  auto total = DimCanonical::sum_of(expr_->constant);
  for (const DimTerm& term : expr_->terms) {
    Dim product = term.coefficient;
    for (const DimAtomPtr& atom : term.factors) product = product * substitute_atom(atom);
    const auto sum = DimCanonical::sum_of(product);
    if (sum.is_too_large || __builtin_add_overflow(total.constant, sum.constant, &total.constant))
      return DimCanonical::too_large();
    total.terms.insert(total.terms.end(), sum.terms.begin(), sum.terms.end());
    // Sums are sorted once, but do not grow without bound before.
    if (total.terms.size() > kMostUnsorted)
      total = DimCanonical::sum_of(DimCanonical::make(std::move(total)));
    if (total.is_too_large) return DimCanonical::too_large();
  }
  return DimCanonical::make(std::move(total));
}

DimRange Dim::bounds(const std::map<std::string, DimRange>& ranges) const {
  const Interval interval = interval_of(*this, ranges);
  DimRange result;
  if (interval.low > -kInfinity && interval.low < kInfinity)
    result.min = static_cast<int64_t>(interval.low);
  if (interval.high < kInfinity && interval.high > -kInfinity)
    result.max = static_cast<int64_t>(interval.high);
  return result;
}

}  // namespace lathe
