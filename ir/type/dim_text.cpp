// Spelling and reading of symbolic sizes.
//
//   sum     = product { ("+" | "-") product }
//   product = power { ("*" | "//" | "/" | "%") power }
//   power   = unary [ "**" INT ]
//   unary   = "-" unary | INT | NAME | "(" sum ")" | HEAD "(" [ arg { "," arg } ] ")"
//
// HEAD is one of sympy's and PyTorch's function names below, as srepr prints them. Heads that are
// no integer expression (comparisons, Piecewise, Where, floats, logarithms) are errors.
// Quotients are kept as a numerator and a denominator until the end, because sympy writes s0/2 as
// Mul(Rational(1, 2), s0); what is left is divided with floor, and is exact in every size that
// PyTorch writes.
#include <fmt/format.h>

#include "ir/support/diag_codes.h"
#include "ir/type/dim.h"
#include "ir/type/dim_expr.h"

namespace lathe {
namespace {

constexpr int kMaxNesting = 64;
constexpr int64_t kMaxPower = 32;

using Kind = DimAtom::Kind;

// --- spelling

bool is_simple(const Dim& dim) {  // needs no parentheses beside an operator
  if (dim.is_const()) return dim.value() >= 0;
  const DimAtom* atom = DimCanonical::as_atom(dim);
  return atom != nullptr && atom->kind != Kind::floor_div && atom->kind != Kind::mod;
}

std::string spell_part(const Dim& dim) {
  return is_simple(dim) ? dim.str() : "(" + dim.str() + ")";
}

std::string spell(const DimAtom& atom) {
  switch (atom.kind) {
    case Kind::symbol:
      return atom.name;
    case Kind::floor_div:
      return spell_part(atom.args[0]) + "//" + spell_part(atom.args[1]);
    case Kind::mod:
      return spell_part(atom.args[0]) + " % " + spell_part(atom.args[1]);
    case Kind::max:
    case Kind::min:
      break;
  }
  std::string text = atom.kind == Kind::max ? "Max(" : "Min(";
  for (size_t i = 0; i < atom.args.size(); ++i) text += (i == 0 ? "" : ", ") + atom.args[i].str();
  return text + ")";
}

// A term without its sign.
std::string spell(const DimTerm& term) {
  if (term.coefficient == 1 && term.factors.size() == 1) return spell(*term.factors.front());
  std::string text;
  if (term.coefficient != 1 && term.coefficient != -1) {
    text = fmt::format("{}", term.coefficient);
    if (text.front() == '-') text.erase(0, 1);
  }
  for (const DimAtomPtr& atom : term.factors) {
    if (!text.empty()) text += '*';
    const bool is_operator = atom->kind == Kind::floor_div || atom->kind == Kind::mod;
    text += is_operator ? "(" + spell(*atom) + ")" : spell(*atom);
  }
  return text;
}

// --- reading

// A quotient whose denominator is positive.
struct Quotient {
  Dim numerator;
  int64_t denominator = 1;

  Dim floor() const { return Dim::floor_div(numerator, denominator); }
};

class DimParser {
 public:
  explicit DimParser(Lexer& lexer) : lexer_(lexer) {}

  Result<Quotient> sum() {
    LATHE_TRY(Quotient total, product());
    while (lexer_.peek().is("+") || lexer_.peek().is("-")) {
      const Token mark = lexer_.take();
      LATHE_TRY(Quotient term, product());
      if (mark.text == "-") term.numerator = Dim(-1) * term.numerator;
      LATHE_TRY(total, add(total, term, mark));
    }
    return total;
  }

 private:
  Result<Quotient> product() {
    LATHE_TRY(Quotient total, power());
    for (;;) {
      const Token mark = lexer_.peek();
      if (lexer_.accept("*")) {
        LATHE_TRY(const Quotient factor, power());
        LATHE_TRY(total, multiply(total, factor, mark));
      } else if (lexer_.accept("/")) {
        LATHE_TRY(const Quotient divisor, power());
        LATHE_TRY(total, divide(total, divisor, mark));
      } else if (lexer_.accept("//")) {
        LATHE_TRY(const Quotient divisor, power());
        total = {Dim::floor_div(total.floor(), divisor.floor())};
      } else if (lexer_.accept("%")) {
        LATHE_TRY(const Quotient divisor, power());
        total = {Dim::mod(total.floor(), divisor.floor())};
      } else {
        return total;
      }
    }
  }

  Result<Quotient> power() {
    LATHE_TRY(Quotient base, unary());
    const Token mark = lexer_.peek();
    if (!lexer_.accept("**")) return base;
    LATHE_TRY(const Quotient exponent, unary());
    return raise(base, exponent, mark);
  }

  Result<Quotient> unary() {
    const Token token = lexer_.peek();
    if (++depth_ > kMaxNesting)
      return lexer_.error(token, "this size expression is nested too deeply", code::kTooLarge);
    Result<Quotient> result = nested_unary(token);
    --depth_;
    return result;
  }

  Result<Quotient> nested_unary(const Token& token) {
    if (lexer_.accept("-")) {
      if (lexer_.peek().kind == TokenKind::integer && lexer_.peek().magnitude == uint64_t{1}
                                                                                     << 63) {
        lexer_.take();
        return Quotient{Dim(INT64_MIN)};
      }
      LATHE_TRY(Quotient operand, unary());
      return Quotient{Dim(-1) * operand.numerator, operand.denominator};
    }
    if (lexer_.accept("(")) {
      LATHE_TRY(Quotient inner, sum());
      LATHE_DO(lexer_.expect(")"));
      return inner;
    }
    if (token.kind == TokenKind::integer) {
      LATHE_TRY(const int64_t value, lexer_.integer());
      return Quotient{Dim(value)};
    }
    if (token.kind != TokenKind::name) return lexer_.expected("a size");
    lexer_.take();
    if (lexer_.accept("(")) return call(token);
    return Quotient{Dim::symbol(std::string(token.text))};
  }

  // HEAD( has been read.
  Result<Quotient> call(const Token& head) {
    if (head.text == "Symbol") return symbol();
    std::vector<Quotient> args;
    while (!lexer_.accept(")")) {
      if (!args.empty()) LATHE_DO(lexer_.expect(","));
      // A comparison or a string inside is a head that no size has; name the head, not the mark.
      if (lexer_.peek().kind == TokenKind::string) return unsupported(head);
      LATHE_TRY(Quotient arg, sum());
      args.push_back(std::move(arg));
    }
    return apply(head, args);
  }

  Result<Quotient> symbol() {
    const Token token = lexer_.peek();
    LATHE_TRY(const std::string name, lexer_.string());
    while (lexer_.accept(",")) {  // assumptions: integer=True
      LATHE_TRY(const Token key, lexer_.expect(TokenKind::name, "an assumption"));
      LATHE_DO(lexer_.expect("="));
      LATHE_TRY(const Token value, lexer_.expect(TokenKind::name, "True or False"));
    }
    LATHE_DO(lexer_.expect(")"));
    Lexer spelled(name, "", nullptr);
    if (spelled.take().kind != TokenKind::name || !spelled.at_end())
      return lexer_.error(token, fmt::format("'{}' cannot be the name of a size", name),
                          code::kSyntax);
    return Quotient{Dim::symbol(name)};
  }

  Result<Quotient> apply(const Token& head, const std::vector<Quotient>& args) {
    const std::string_view name = head.text;
    const size_t count = args.size();
    if ((name == "Add" || name == "Mul" || name == "Max" || name == "Min") && count >= 1) {
      Quotient total = args[0];
      for (size_t i = 1; i < count; ++i) {
        LATHE_TRY(total, fold(head, total, args[i]));
      }
      return total;
    }
    if (count == 1) return apply_one(head, args[0]);
    if (count == 2) return apply_two(head, args[0], args[1]);
    if (name == "ModularIndexing" && count == 3)
      return Quotient{Dim::mod(Dim::floor_div(args[0].floor(), args[1].floor()), args[2].floor())};
    return unsupported(head);
  }

  Result<Quotient> fold(const Token& head, const Quotient& a, const Quotient& b) {
    if (head.text == "Add") return add(a, b, head);
    if (head.text == "Mul") return multiply(a, b, head);
    if (head.text == "Max") return Quotient{Dim::max(a.floor(), b.floor())};
    return Quotient{Dim::min(a.floor(), b.floor())};
  }

  Result<Quotient> apply_one(const Token& head, const Quotient& x) {
    const std::string_view name = head.text;
    if (name == "Integer") return x;
    const bool is_whole = x.denominator == 1;
    if (name == "FloorToInt" || name == "floor") return Quotient{x.floor()};
    if (name == "CeilToInt" || name == "ceiling") {
      const Dim negated = Dim(-1) * x.numerator;
      return Quotient{Dim(-1) * Dim::floor_div(negated, x.denominator)};
    }
    if (is_whole && (name == "TruncToInt" || name == "RoundToInt" || name == "ToFloat")) return x;
    return unsupported(head);
  }

  Result<Quotient> apply_two(const Token& head, const Quotient& a, const Quotient& b) {
    const std::string_view name = head.text;
    if (name == "Rational" || name == "IntTrueDiv" || name == "FloatTrueDiv")
      return divide(a, b, head);
    if (name == "Pow" || name == "PowByNatural") return raise(a, b, head);
    const Dim x = a.floor();
    const Dim y = b.floor();
    if (name == "FloorDiv" || name == "CleanDiv") return Quotient{Dim::floor_div(x, y)};
    if (name == "Mod" || name == "PythonMod") return Quotient{Dim::mod(x, y)};
    if (name == "CeilDiv") return Quotient{Dim(-1) * Dim::floor_div(Dim(-1) * x, y)};
    if ((name == "LShift" || name == "RShift") && y.is_const() && y.value() >= 0 &&
        y.value() < 63) {
      const Dim scale = int64_t{1} << y.value();
      return Quotient{name == "LShift" ? x * scale : Dim::floor_div(x, scale)};
    }
    return unsupported(head);
  }

  Result<Quotient> add(const Quotient& a, const Quotient& b, const Token& where) {
    LATHE_TRY(const int64_t denominator, multiply_denominators(a, b, where));
    if (denominator == 1) return Quotient{a.numerator + b.numerator};
    return Quotient{a.numerator * b.denominator + b.numerator * a.denominator, denominator};
  }

  Result<Quotient> multiply(const Quotient& a, const Quotient& b, const Token& where) {
    LATHE_TRY(const int64_t denominator, multiply_denominators(a, b, where));
    return Quotient{a.numerator * b.numerator, denominator};
  }

  Result<Quotient> divide(const Quotient& a, const Quotient& b, const Token& where) {
    if (!b.numerator.is_const()) return Quotient{Dim::floor_div(a.floor(), b.floor())};
    if (b.numerator.value() == 0)
      return lexer_.error(where, "a size is divided by zero", code::kBadValue);
    if (b.numerator.value() == INT64_MIN) return too_large(where);
    const bool is_negative = b.numerator.value() < 0;
    const Quotient inverse = {is_negative ? -b.denominator : b.denominator,
                              is_negative ? -b.numerator.value() : b.numerator.value()};
    return multiply(a, inverse, where);
  }

  Result<Quotient> raise(const Quotient& base, const Quotient& exponent, const Token& where) {
    const Dim power = exponent.floor();
    if (!power.is_const() || exponent.denominator != 1 || power.value() < -1)
      return lexer_.error(where, "a size is raised to something that is not a natural number",
                          code::kUnsupported);
    if (power.value() == -1) return divide({Dim(1)}, base, where);
    if (power.value() > kMaxPower) return too_large(where);
    Quotient total = {Dim(1)};
    for (int64_t i = 0; i < power.value(); ++i) {
      LATHE_TRY(total, multiply(total, base, where));
    }
    return total;
  }

  Result<int64_t> multiply_denominators(const Quotient& a, const Quotient& b, const Token& where) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.denominator, b.denominator, &product)) return too_large(where);
    return product;
  }

  Diag too_large(const Token& where) const {
    return lexer_.error(where, "this size expression overflows 64 bits", code::kTooLarge);
  }

  Diag unsupported(const Token& head) const {
    return lexer_.error(
        head, fmt::format("'{}' is not supported in a size expression", head.text.substr(0, 40)),
        code::kUnsupported);
  }

  Lexer& lexer_;
  int depth_ = 0;
};

}  // namespace

std::string Dim::str() const {
  if (!expr_) return fmt::format("{}", value_);
  if (expr_->is_too_large) return "too_large";
  std::string text;
  auto append = [&](bool is_negative, const std::string& magnitude) {
    if (text.empty())
      text = (is_negative ? "-" : "") + magnitude;
    else
      text += (is_negative ? " - " : " + ") + magnitude;
  };
  for (const DimTerm& term : expr_->terms) append(term.coefficient < 0, spell(term));
  const int64_t constant = expr_->constant;
  const uint64_t magnitude =
      constant < 0 ? ~static_cast<uint64_t>(constant) + 1 : static_cast<uint64_t>(constant);
  if (constant != 0) append(constant < 0, fmt::format("{}", magnitude));
  return text;
}

Result<Dim> parse_dim(Lexer& lexer) {
  const Token start = lexer.peek();
  LATHE_TRY(const Quotient value, DimParser(lexer).sum());
  Dim dim = value.floor();
  if (dim.is_too_large())
    return lexer.error(start, "this size expression overflows 64 bits or is too long",
                       code::kTooLarge);
  return dim;
}

std::string to_string(const DimRange& range) {
  return fmt::format("[{}, {}]", range.min ? fmt::to_string(*range.min) : "-inf",
                     range.max ? fmt::to_string(*range.max) : "inf");
}

Result<DimRange> parse_range(Lexer& lexer) {
  const Token start = lexer.peek();
  const auto bound = [&]() -> Result<std::optional<int64_t>> {
    const bool is_negative = lexer.accept("-");
    if (lexer.accept("inf")) return std::optional<int64_t>();
    LATHE_TRY(const int64_t value, lexer.integer_of_sign(is_negative));
    return std::optional<int64_t>(value);
  };
  DimRange range;
  LATHE_DO(lexer.expect("["));
  LATHE_TRY(range.min, bound());
  LATHE_DO(lexer.expect(","));
  LATHE_TRY(range.max, bound());
  LATHE_DO(lexer.expect("]"));
  if (range.min && range.max && *range.min > *range.max)
    return lexer.error(start, "this range is empty", code::kDimRange);
  return range;
}

Result<Dim> parse_dim(std::string_view text) {
  Lexer lexer(text, "", nullptr);
  LATHE_TRY(Dim dim, parse_dim(lexer));
  if (!lexer.at_end()) return lexer.expected("the end of the size expression");
  return dim;
}

}  // namespace lathe
