// The one lexer of Lathe's texts: graph IR, loop IR and size expressions.
//
// Tokens
//   name      [A-Za-z_][A-Za-z0-9_]*            matmul, f32, s0, inf, nan, true
//   value     % then a name or digits, with an   %x, %0, %n.1
//             optional result index `.digits`
//   function  @ then a name or digits           @main, @3
//   integer   decimal or 0x..., unsigned        128, 0x1f
//   real      with a point or an exponent       1.0, 1e-5, 0x1.8p3
//   string    "..." or '...' with \n \t \r \0 \\ \" \' \xHH
//   mark      -> .. // ** == != <= >= << >> && || += and any other single ASCII punctuation
// There are no signed numbers: `-` is a mark, and integer() and number() read a sign.
//
// `//` begins a comment where it stands at the start of a line or after white space; elsewhere it
// is the mark for floor division, so `f32[s0//2]  // half` means what it looks like.
//
// A lexer holds one token of look-ahead and never fails by itself: bytes that make no token become
// a `bad` token, and whoever expects something else there gets its message.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/support/loc.h"
#include "ir/support/result.h"

namespace lathe {

enum class TokenKind : uint8_t {
  end,
  name,
  value,
  function,
  integer,
  real,
  string,
  mark,
  bad,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;   // as written, without the % or @ of values and functions
  uint64_t magnitude = 0;  // of integers
  double real = 0;         // of integers and reals
  std::string string;      // of strings, unescaped; of bad tokens, what is wrong
  size_t offset = 0;       // of its first byte in the text
  int line = 1;            // 1-based
  int column = 1;          // 1-based, in bytes

  // A mark or name with exactly this spelling.
  bool is(std::string_view spelling) const {
    return (kind == TokenKind::mark || kind == TokenKind::name) && text == spelling;
  }
};

class Lexer {
 public:
  // `text` must outlive the lexer. `locs` may be null: then errors name the column in words.
  Lexer(std::string_view text, std::string_view file, LocTable* locs);

  const Token& peek() const { return token_; }  // the next token
  Token take();                                 // the next token, consumed
  bool at_end() const { return token_.kind == TokenKind::end; }

  // Consumes the next token when it is this mark or name.
  bool accept(std::string_view spelling);
  // As accept, or a syntax error "expected 'x', got 'y'".
  Status expect(std::string_view spelling);
  // The next token, of this kind, or a syntax error; `what` names what is expected ("a value").
  Result<Token> expect(TokenKind kind, std::string_view what);
  Result<int64_t> integer();                          // with an optional sign; in range
  Result<int64_t> integer_of_sign(bool is_negative);  // whose sign has been read
  Result<double> number();       // integer or real, with an optional sign, inf and nan
  Result<std::string> string();  // unescaped

  // The location of a token, and errors there.
  Loc loc(const Token& token) const;
  Diag error(const Token& token, std::string message, const char* code) const;
  // A syntax error at the next token: "expected <what>, got '<token>'".
  Diag expected(std::string_view what) const;

 private:
  void advance();
  void skip_blanks();
  void lex_word(TokenKind kind, size_t start);
  void lex_number();
  void lex_string();
  void lex_mark();
  void bad(std::string message);
  char at(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  std::string_view text_;
  std::string file_;
  LocTable* locs_;
  size_t position_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  Token token_;
};

// `text` in double quotes, escaped so that the lexer reads it back.
std::string quote(std::string_view text);

// `text` with every character that a name does not allow replaced by '_'; never empty. It may start
// with a digit, as the names of values and functions do.
std::string as_name(std::string_view text);

// The shortest decimal that reads back as `value`, always with a point, an exponent, inf or nan.
std::string spell_real(double value);

}  // namespace lathe
