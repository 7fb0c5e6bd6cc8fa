// The lexer of every text form.
#include "ir/support/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "ir/support/diag_codes.h"
#include "ir/support/printable.h"

namespace lathe {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::string_view kLongMarks[] = {
    "->", "..", "//", "**", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "+="};

// How a token is quoted in an error; long ones are cut.
std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  std::string_view sigil = token.kind == TokenKind::value      ? "%"
                           : token.kind == TokenKind::function ? "@"
                                                               : "";
  std::string_view text = token.text.substr(0, 40);
  return fmt::format("'{}{}{}'", sigil, text, text.size() < token.text.size() ? "..." : "");
}

}  // namespace

Lexer::Lexer(std::string_view text, std::string_view file, LocTable* locs)
    : text_(text), file_(file), locs_(locs) {
  advance();
}

Token Lexer::take() {
  Token token = std::move(token_);
  advance();
  return token;
}

bool Lexer::accept(std::string_view spelling) {
  if (!token_.is(spelling)) return false;
  advance();
  return true;
}

Status Lexer::expect(std::string_view spelling) {
  if (accept(spelling)) return Ok{};
  return expected(fmt::format("'{}'", spelling));
}

Result<Token> Lexer::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) return expected(what);
  return take();
}

Result<int64_t> Lexer::integer() { return integer_of_sign(accept("-")); }

Result<int64_t> Lexer::integer_of_sign(bool is_negative) {
  Token start = token_;
  if (token_.kind != TokenKind::integer) return expected("an integer");
  const uint64_t limit = uint64_t{1} << 63;
  const uint64_t magnitude = token_.magnitude;
  if (magnitude > limit || (magnitude == limit && !is_negative))
    return error(start, "this integer does not fit in 64 bits", code::kTooLarge);
  advance();
  return static_cast<int64_t>(is_negative ? ~magnitude + 1 : magnitude);
}

Result<double> Lexer::number() {
  const bool is_negative = accept("-");
  double value = 0;
  if (token_.kind == TokenKind::integer || token_.kind == TokenKind::real)
    value = token_.real;
  else if (token_.is("inf"))
    value = std::numeric_limits<double>::infinity();
  else if (token_.is("nan"))
    value = std::numeric_limits<double>::quiet_NaN();
  else
    return expected("a number");
  advance();
  return is_negative ? -value : value;
}

Result<std::string> Lexer::string() {
  LATHE_TRY(Token token, expect(TokenKind::string, "a string"));
  return std::move(token.string);
}

Loc Lexer::loc(const Token& token) const {
  if (locs_ == nullptr) return Loc::unknown();
  const size_t start = token.offset - static_cast<size_t>(token.column - 1);
  std::string_view line = text_.substr(start, token.offset - start + LocTable::kKeptOnEachSide);
  line = line.substr(0, line.find('\n', token.offset - start));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return locs_->text(file_, token.line, token.column, line);
}

Diag Lexer::error(const Token& token, std::string message, const char* code) const {
  if (locs_ == nullptr) message += fmt::format(" at column {}", token.column);
  return Diag{code, loc(token), std::move(message)};
}

Diag Lexer::expected(std::string_view what) const {
  if (token_.kind == TokenKind::bad) return error(token_, token_.string, code::kSyntax);
  return error(token_, fmt::format("expected {}, got {}", what, describe(token_)), code::kSyntax);
}

void Lexer::skip_blanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      line_start_ = position_ + 1;
    }
    const bool is_comment =
        c == '/' && at(position_ + 1) == '/' && (position_ == 0 || is_blank(text_[position_ - 1]));
    if (is_comment) {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (is_blank(c)) {
      ++position_;
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  skip_blanks();
  token_ = Token{};
  token_.offset = position_;
  token_.line = line_;
  token_.column = static_cast<int>(position_ - line_start_) + 1;
  const char c = at(position_);
  if (position_ >= text_.size()) {
    token_.kind = TokenKind::end;
  } else if (is_name_start(c)) {
    lex_word(TokenKind::name, position_);
  } else if (c == '%' && is_name_char(at(position_ + 1))) {
    lex_word(TokenKind::value, position_ + 1);
  } else if (c == '@' && is_name_char(at(position_ + 1))) {
    lex_word(TokenKind::function, position_ + 1);
  } else if (is_digit(c)) {
    lex_number();
  } else if (c == '"' || c == '\'') {
    lex_string();
  } else {
    lex_mark();
  }
}

void Lexer::lex_word(TokenKind kind, size_t start) {
  size_t end = start;
  while (is_name_char(at(end))) ++end;
  if (kind == TokenKind::value && at(end) == '.' && is_digit(at(end + 1))) {
    ++end;
    while (is_digit(at(end))) ++end;
  }
  token_.kind = kind;
  token_.text = text_.substr(start, end - start);
  position_ = end;
}

void Lexer::lex_number() {
  const size_t start = position_;
  const bool is_hex = text_[start] == '0' && (at(start + 1) == 'x' || at(start + 1) == 'X');
  const uint64_t base = is_hex ? 16 : 10;
  size_t end = start + (is_hex ? 2 : 0);
  const size_t digits = end;
  auto is_part = [&](char c) { return is_hex ? hex_digit(c) >= 0 : is_digit(c); };
  bool overflows = false;
  for (; is_part(at(end)); ++end) {
    const uint64_t digit = static_cast<uint64_t>(hex_digit(text_[end]));
    overflows |= __builtin_mul_overflow(token_.magnitude, base, &token_.magnitude);
    overflows |= __builtin_add_overflow(token_.magnitude, digit, &token_.magnitude);
  }
  bool is_real = false;
  if (at(end) == '.' && at(end + 1) != '.') {
    is_real = true;
    ++end;
    while (is_part(at(end))) ++end;
  }
  const char exponent = is_hex ? 'p' : 'e';
  if ((at(end) | 0x20) == exponent) {
    size_t after = end + 1;
    if (at(after) == '+' || at(after) == '-') ++after;
    if (is_digit(at(after))) {
      is_real = true;
      end = after;
      while (is_digit(at(end))) ++end;
    }
  }
  token_.text = text_.substr(start, end - start);
  position_ = end;
  if (end == digits || is_name_char(at(end))) return bad("malformed number");
  if (overflows && !is_real) return bad("this integer does not fit in 64 bits");
  token_.kind = is_real ? TokenKind::real : TokenKind::integer;
  // strtod wants a terminated string; a numeral is short unless it is an attack, and then linear.
  token_.real = is_real ? std::strtod(std::string(token_.text).c_str(), nullptr)
                        : static_cast<double>(token_.magnitude);
}

void Lexer::lex_string() {
  const size_t start = position_;
  const char quote_mark = text_[start];
  size_t end = start + 1;
  std::string value;
  for (; at(end) != quote_mark; ++end) {
    if (end >= text_.size() || text_[end] == '\n') {
      token_.text = text_.substr(start, end - start);
      position_ = end;
      return bad("this string has no closing quote");
    }
    if (text_[end] != '\\') {
      value += text_[end];
      continue;
    }
    const char c = at(++end);
    constexpr std::string_view kEscapes = "ntr0\\\"'";
    constexpr std::string_view kMeanings{"\n\t\r\0\\\"'", 7};
    const size_t escape = c == '\0' ? kEscapes.npos : kEscapes.find(c);
    if (escape != kEscapes.npos) {
      value += kMeanings[escape];
    } else if (c == 'x' && hex_digit(at(end + 1)) >= 0 && hex_digit(at(end + 2)) >= 0) {
      value += static_cast<char>(hex_digit(text_[end + 1]) * 16 + hex_digit(text_[end + 2]));
      end += 2;
    } else {
      token_.text = text_.substr(start, end - start);
      position_ = end;
      return bad("unknown escape in a string");
    }
  }
  token_.kind = TokenKind::string;
  token_.string = std::move(value);
  token_.text = text_.substr(start, end + 1 - start);
  position_ = end + 1;
}

void Lexer::lex_mark() {
  size_t length = 1;
  for (std::string_view mark : kLongMarks)
    if (text_.substr(position_, 2) == mark) length = 2;
  token_.text = text_.substr(position_, length);
  position_ += length;
  const unsigned char c = static_cast<unsigned char>(token_.text[0]);
  if (c <= ' ' || c >= 0x7f) return bad("unexpected character outside a string");
  token_.kind = TokenKind::mark;
}

void Lexer::bad(std::string message) {
  token_.kind = TokenKind::bad;
  token_.string = std::move(message);
}

// What printable_line would escape, and what it would not know from an escape, byte by byte.
std::string quote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::string_view c = text.substr(0, std::max<size_t>(utf8_size(text), 1));
    text.remove_prefix(c.size());
    if (c == "\"" || c == "\\")
      out += fmt::format("\\{}", c);
    else if (c == "\n")
      out += "\\n";
    else if (c == "\t")
      out += "\\t";
    else if (printable_line(c) == c)
      out += c;
    else
      for (char byte : c) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return out + '"';
}

std::string as_name(std::string_view text) {
  std::string name(text);
  for (char& c : name)
    if (!is_name_char(c)) c = '_';
  return name.empty() ? "_" : name;
}

std::string spell_real(double value) {
  std::string text = value != value ? "nan" : fmt::format("{}", value);
  if (text.find_first_of(".en") == text.npos) text += ".0";
  return text;
}

}  // namespace lathe
