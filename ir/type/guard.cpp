// Spelling, reading and deciding guards.
#include "ir/type/guard.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr std::pair<Relation, std::string_view> kSigns[] = {
    {Relation::eq, "=="}, {Relation::ne, "!="}, {Relation::lt, "<"},
    {Relation::le, "<="}, {Relation::gt, ">"},  {Relation::ge, ">="},
};

// What can be said of a relation of `gap` and 0.
std::optional<bool> decide(Relation relation, const DimRange& gap) {
  const bool is_positive = gap.min && *gap.min > 0, is_negative = gap.max && *gap.max < 0;
  const bool is_zero = gap.min && gap.max && *gap.min == 0 && *gap.max == 0;
  const auto among = [](bool holds, bool fails) {
    return holds ? std::optional(true) : fails ? std::optional(false) : std::nullopt;
  };
  const bool is_at_most = gap.max && *gap.max <= 0, is_at_least = gap.min && *gap.min >= 0;
  switch (relation) {
    case Relation::eq:
      return among(is_zero, is_positive || is_negative);
    case Relation::ne:
      return among(is_positive || is_negative, is_zero);
    case Relation::lt:
      return among(is_negative, is_at_least);
    case Relation::le:
      return among(is_at_most, is_positive);
    case Relation::gt:
      return among(is_positive, is_at_most);
    case Relation::ge:
      return among(is_at_least, is_negative);
  }
  return std::nullopt;
}

}  // namespace

std::string_view relation_sign(Relation relation) {
  for (const auto& [known, sign] : kSigns)
    if (known == relation) return sign;
  return "";
}

std::string to_string(const Guard& guard) {
  return fmt::format("{} {} {}", guard.left.str(), relation_sign(guard.relation),
                     guard.right.str());
}

Result<Guard> parse_guard(Lexer& lexer) {
  Guard guard;
  LATHE_TRY(guard.left, parse_dim(lexer));
  const auto sign = std::find_if(std::begin(kSigns), std::end(kSigns),
                                 [&](const auto& known) { return lexer.accept(known.second); });
  if (sign == std::end(kSigns)) return lexer.expected("a comparison, as in s0 == 2*s1");
  guard.relation = sign->first;
  LATHE_TRY(guard.right, parse_dim(lexer));
  return guard;
}

std::string spell_known(const Guard& guard) {
  std::string text = to_string(guard);
  if (!guard.cause.empty()) text += " because " + quote(guard.cause);
  if (!guard.pass.empty()) text += " by " + guard.pass;
  return text;
}

Result<Guard> parse_known_guard(Lexer& lexer) {
  LATHE_TRY(Guard guard, parse_guard(lexer));
  if (lexer.accept("because")) {
    LATHE_TRY(guard.cause, lexer.string());
  }
  if (lexer.accept("by")) {
    LATHE_TRY(const Token pass, lexer.expect(TokenKind::name, "the name of a pass"));
    guard.pass = std::string(pass.text);
  }
  return guard;
}

std::optional<bool> decide(const Guard& guard, const std::map<std::string, DimRange>& ranges) {
  if (guard.left.is_const() && guard.right.is_const()) {  // whose difference may overflow
    const int64_t left = guard.left.value(), right = guard.right.value();
    const int64_t sign = left < right ? -1 : left > right ? 1 : 0;
    return decide(guard.relation, DimRange{sign, sign});
  }
  return decide(guard.relation, (guard.left - guard.right).bounds(ranges));
}

Guard substitute(Guard guard, const std::map<std::string, Dim>& symbols) {
  guard.left = guard.left.substitute(symbols);
  guard.right = guard.right.substitute(symbols);
  return guard;
}

Status check_guards(const std::vector<Guard>& guards, const std::map<std::string, Dim>& sizes) {
  for (const Guard& guard : guards) {
    const Guard bound = substitute(guard, sizes);
    if (bound.left.is_too_large() || bound.right.is_too_large())
      return Diag{code::kTooLarge, guard.loc,
                  fmt::format("the guard '{}' overflows 64 bits", to_string(guard))};
    if (decide(bound, {}) != false) continue;
    std::vector<std::string> symbols;
    guard.left.collect_symbols(symbols);
    guard.right.collect_symbols(symbols);
    std::string given;
    for (const std::string& symbol : symbols) {
      const auto found = sizes.find(symbol);
      if (found == sizes.end()) continue;
      given += fmt::format("{}{} = {}", given.empty() ? "" : ", ", symbol, found->second.str());
    }
    return Diag{
        code::kDimRange, guard.loc,
        fmt::format("with {}: the graph is only for sizes with {}{}", given, to_string(guard),
                    guard.cause.empty() ? "" : fmt::format(" ({})", guard.cause))};
  }
  return Ok{};
}

}  // namespace lathe
