// Reading attribute values and locations.
#include "ir/graph/parse_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/graph/builder.h"
#include "ir/graph/tensor.h"
#include "ir/support/diag_codes.h"
#include "ir/type/type_text.h"

namespace lathe {
namespace {

constexpr int64_t kMaxLine = std::numeric_limits<int>::max();

Result<bool> parse_bool(Lexer& lexer) {
  if (lexer.accept("true")) return true;
  if (lexer.accept("false")) return false;
  return lexer.expected("true or false");
}

// "[a, b]" of what `parse_element` reads.
template <class T, class F>
Result<Attr> parse_list(Lexer& lexer, F parse_element) {
  std::vector<T> list;
  LATHE_DO(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!list.empty()) LATHE_DO(lexer.expect(","));
    LATHE_TRY(T element, parse_element());
    list.push_back(std::move(element));
  }
  return Attr(std::move(list));
}

template <class T>
Result<Attr> as_attr(Result<T> result) {
  if (!result.ok()) return std::move(result).error();
  return Attr(*std::move(result));
}

// An integer that a double may not hold stays one.
Result<Attr> parse_number(Lexer& lexer) {
  Lexer ahead = lexer;
  ahead.accept("-");
  const Token& token = ahead.peek();
  if (token.kind == TokenKind::integer && token.magnitude > kMaxExactInteger)
    return as_attr(lexer.integer());
  return as_attr(lexer.number());
}

// Reals, but integers when one of them is no real; those have no fractions beside them.
Result<Attr> parse_numbers(Lexer& lexer) {
  std::vector<double> reals;
  std::vector<int64_t> integers;
  bool has_large = false;
  LATHE_DO(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!reals.empty()) LATHE_DO(lexer.expect(","));
    const Token token = lexer.peek();
    LATHE_TRY(const Attr number, parse_number(lexer));
    if (const auto* integer = std::get_if<int64_t>(&number)) {
      has_large = true;
      integers.push_back(*integer);
      reals.push_back(static_cast<double>(*integer));
    } else {
      const double real = *std::get_if<double>(&number);
      const bool is_whole = std::fabs(real) <= kMaxExactInteger && real == std::trunc(real);
      if (is_whole) integers.push_back(static_cast<int64_t>(real));
      reals.push_back(real);
    }
    if (has_large && integers.size() != reals.size())
      return lexer.error(token, "an integer of more than 53 bits stands among fractions",
                         code::kBadValue);
  }
  return has_large ? Attr(std::move(integers)) : Attr(std::move(reals));
}

Result<Attr> parse_value(Lexer& lexer, AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean:
      return as_attr(parse_bool(lexer));
    case AttrKind::integer:
      return as_attr(lexer.integer());
    case AttrKind::number:
      return parse_number(lexer);
    case AttrKind::string:
      return as_attr(lexer.string());
    case AttrKind::dtype:
      return as_attr(parse_dtype(lexer));
    case AttrKind::dim:
      return as_attr(parse_dim(lexer));
    case AttrKind::ints:
      return parse_list<int64_t>(lexer, [&] { return lexer.integer(); });
    case AttrKind::numbers:
      return parse_numbers(lexer);
    case AttrKind::dims:
      return parse_list<Dim>(lexer, [&] { return parse_dim(lexer); });
    case AttrKind::bools:
      return parse_list<bool>(lexer, [&] { return parse_bool(lexer); });
    case AttrKind::layout:
      LATHE_DO(lexer.expect("layout"));
      return as_attr(parse_layout(lexer));
  }
  return lexer.expected("a value");
}

// A line or column, behind `mark`.
Result<int> parse_number_of_text(Lexer& lexer, std::string_view mark) {
  LATHE_DO(lexer.expect(mark));
  const Token token = lexer.peek();
  LATHE_TRY(const int64_t line, lexer.integer());
  if (line < 0 || line > kMaxLine)
    return lexer.error(token, "this is no line or column number", code::kBadValue);
  return static_cast<int>(line);
}

// `"model.py":12 "forward" "h = f(x)"`
Result<Frame> parse_frame(Lexer& lexer) {
  Frame frame;
  LATHE_TRY(frame.file, lexer.string());
  LATHE_TRY(frame.line, parse_number_of_text(lexer, ":"));
  LATHE_TRY(frame.function, lexer.string());
  LATHE_TRY(frame.code, lexer.string());
  return frame;
}

Result<Loc> parse_python_location(Lexer& lexer, LocTable& locs) {
  LocRow row;
  row.kind = LocRow::Kind::python;
  LATHE_TRY(row.fx_node, lexer.string());
  LATHE_TRY(row.fx_target, lexer.string());
  LATHE_TRY(row.module_path, lexer.string());
  LATHE_TRY(row.module_class, lexer.string());
  std::vector<Frame> frames;  // innermost first
  while (lexer.accept(frames.empty() ? "at" : "from")) {
    LATHE_TRY(Frame frame, parse_frame(lexer));
    frames.push_back(std::move(frame));
  }
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    row.frame = locs.add_frame(row.frame, std::move(*frame));
  return locs.add(std::move(row));
}

Result<Loc> parse_location(Lexer& lexer, LocTable& locs, const std::map<int64_t, Loc>& earlier) {
  if (lexer.accept("python")) return parse_python_location(lexer, locs);
  if (lexer.accept("text")) {
    LocRow row;
    row.kind = LocRow::Kind::text;
    LATHE_TRY(row.file, lexer.string());
    LATHE_TRY(row.line, parse_number_of_text(lexer, ":"));
    LATHE_TRY(row.column, parse_number_of_text(lexer, ":"));
    LATHE_TRY(row.source_line, lexer.string());
    if (lexer.peek().is("behind")) {
      LATHE_TRY(row.source_begin, parse_number_of_text(lexer, "behind"));
    }
    return locs.add(std::move(row));
  }
  LATHE_DO(lexer.expect("derived"));
  LATHE_TRY(const std::string by, lexer.string());
  std::vector<Loc> from;
  LATHE_DO(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!from.empty()) LATHE_DO(lexer.expect(","));
    const Token token = lexer.peek();
    LATHE_TRY(const int64_t number, parse_loc_number(lexer));
    const auto found = earlier.find(number);
    if (found == earlier.end())
      return lexer.error(token, fmt::format("no location @{} above this one", number),
                         code::kUndefinedValue);
    from.push_back(found->second);
  }
  return locs.derive(by, std::move(from));
}

}  // namespace

Result<Attr> parse_attr(Lexer& lexer, const OpDef& op, const AttrSpec& spec) {
  if (spec.is_optional && lexer.accept("none")) return Attr();
  Result<Attr> value = parse_value(lexer, spec.kind);
  if (!value.ok() && value.error().code == code::kSyntax)
    value.error().message =
        fmt::format("attribute '{}' of '{}': {}", spec.name, op.name, value.error().message);
  return value;
}

Result<int64_t> parse_loc_number(Lexer& lexer) {
  const Token token = lexer.peek();
  LATHE_TRY(const Token at, lexer.expect(TokenKind::function, "a location such as @3"));
  int64_t number = 0;
  bool is_number = at.text.size() <= 9;
  for (char c : at.text) {
    is_number &= c >= '0' && c <= '9';
    if (is_number) number = number * 10 + (c - '0');
  }
  if (!is_number)
    return lexer.error(token, fmt::format("'@{}' is no location's number", at.text.substr(0, 40)),
                       code::kSyntax);
  return number;
}

Result<KernelPlan> parse_plan(Lexer& lexer) {
  LATHE_TRY(const Token kind, lexer.expect(TokenKind::name, "a kind of kernel"));
  KernelPlan plan{std::string(kind.text)};
  if (!lexer.accept("{")) return plan;
  for (const char* mark : {"tile", "=", "["}) LATHE_DO(lexer.expect(mark));
  LATHE_TRY(const int64_t rows, lexer.integer());
  LATHE_DO(lexer.expect(","));
  LATHE_TRY(const int64_t vectors, lexer.integer());
  for (const char* mark : {"]", "}"}) LATHE_DO(lexer.expect(mark));
  plan.tile = {rows, vectors};
  return plan;
}

Result<std::map<int64_t, Loc>> parse_locs(Lexer& lexer, LocTable& locs) {
  std::map<int64_t, Loc> rows;
  LATHE_DO(lexer.expect("{"));
  while (!lexer.accept("}")) {
    const Token token = lexer.peek();
    LATHE_TRY(const int64_t number, parse_loc_number(lexer));
    LATHE_DO(lexer.expect("="));
    LATHE_TRY(const Loc loc, parse_location(lexer, locs, rows));
    if (!rows.emplace(number, loc).second)
      return lexer.error(token, fmt::format("location @{} is defined twice", number),
                         code::kRedefinedValue);
  }
  return rows;
}

}  // namespace lathe
