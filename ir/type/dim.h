// Symbolic sizes. A Dim is an immutable integer expression over named symbols (s0, u1), kept in a
// canonical form, so that equal expressions compare equal.
//
// Canonical form: a sum of products with integer coefficients, terms sorted; floor_div, mod, max
// and min are atoms whose arguments are canonical. Decided here: linear identities (s0 + s0 = 2*s0,
// (4*s0)//4 = s0), and exact divisions of polynomials, where a symbolic divisor is taken to be
// nonzero. Not decided: equalities that need ranges; callers with ranges use bounds().
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/support/lexer.h"
#include "ir/support/result.h"

namespace lathe {

// Inclusive bounds; nullopt is unbounded on that side.
struct DimRange {
  std::optional<int64_t> min;
  std::optional<int64_t> max;
  friend bool operator==(const DimRange& a, const DimRange& b) {
    return a.min == b.min && a.max == b.max;
  }
};

class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}
  static Dim symbol(std::string name);

  bool is_const() const { return expr_ == nullptr; }
  // The value of a constant; 0 for a symbolic one (check is_const first).
  int64_t value() const { return value_; }
  // The name when this is a bare symbol, else "".
  std::string symbol_name() const;
  void collect_symbols(std::vector<std::string>& names) const;  // appends, without duplicates
  // The result of arithmetic that left 64 bits, or of an expression too big to keep. It absorbs
  // everything, prints as "too_large", and evaluates to an error.
  bool is_too_large() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  static Dim floor_div(const Dim& a, const Dim& b);  // rounds to minus infinity; 0 divisor gives 0
  static Dim mod(const Dim& a, const Dim& b);        // Python's sign rule; 0 divisor gives 0
  static Dim max(const Dim& a, const Dim& b);
  static Dim min(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }
  // Whether the two are known not to be equal: two numbers. What symbols stand for may be equal.
  friend bool differ(const Dim& a, const Dim& b) { return a.is_const() && b.is_const() && a != b; }

  // Python syntax that parse_dim reads back: "2*s0 + 1", "s0//2", "Max(1, s0)".
  std::string str() const;
  uint64_t hash() const;
  // The terms of the sum: products of symbols, floor_divs and so on, each with its coefficient; the
  // constant is that of 1, and comes last. Nothing for 0; one that is too large is its own.
  std::vector<std::pair<Dim, int64_t>> monomials() const;

  // The value under an assignment of every symbol; an error names the first missing one, or
  // overflow.
  Result<int64_t> evaluate(const std::map<std::string, int64_t>& symbols) const;
  Dim substitute(const std::map<std::string, Dim>& symbols) const;
  DimRange bounds(const std::map<std::string, DimRange>& ranges) const;

 private:
  struct Expr;
  friend struct DimCanonical;
  int64_t value_ = 0;
  std::shared_ptr<const Expr> expr_;
};

// Infix Python syntax ("2*s0 + 1", "s0//2 % 3", "Max(1, s0)") and sympy's srepr
// ("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))", FloorDiv, Mod, ModularIndexing,
// ...). Errors name the position; recursion depth is bounded.
Result<Dim> parse_dim(std::string_view text);
// The longest expression at the lexer's next token, which need not end the text.
Result<Dim> parse_dim(Lexer& lexer);

// "[1, inf]", which parse_range reads back: not an empty one.
std::string to_string(const DimRange& range);
Result<DimRange> parse_range(Lexer& lexer);

}  // namespace lathe
