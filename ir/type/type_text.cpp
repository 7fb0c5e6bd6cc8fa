// Types from text: see type_text.h.
#include "ir/type/type_text.h"

#include <fmt/format.h>

#include <limits>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

std::string dtype_names() {
  std::string names;
  for (int i = 0; i < kNumDTypes; ++i)
    names += (i == 0 ? "" : ", ") + std::string(dtype_name(static_cast<DType>(i)));
  return names;
}

}  // namespace

Result<DType> parse_dtype(Lexer& lexer) {
  const Token token = lexer.peek();
  if (token.kind != TokenKind::name) return lexer.expected("a dtype");
  const std::optional<DType> dtype = parse_dtype(token.text);
  if (!dtype)
    return lexer.error(
        token,
        fmt::format("no dtype named '{}'; there are {}", token.text.substr(0, 40), dtype_names()),
        code::kSyntax);
  lexer.take();
  return *dtype;
}

Result<Layout> parse_layout(Lexer& lexer) {
  Layout layout;
  LATHE_DO(lexer.expect("("));
  while (!lexer.accept(")")) {
    if (!layout.empty()) LATHE_DO(lexer.expect(","));
    const Token token = lexer.peek();
    LATHE_TRY(const int64_t dim, lexer.integer());
    if (dim < 0 || dim > std::numeric_limits<int>::max())
      return lexer.error(token, "a layout lists dims, counted from 0", code::kBadValue);
    layout.push_back(static_cast<int>(dim));
  }
  return layout;
}

Result<TensorType> parse_type(Lexer& lexer) {
  const Token start = lexer.peek();
  TensorType type;
  LATHE_TRY(type.dtype, parse_dtype(lexer));
  LATHE_DO(lexer.expect("["));
  while (!lexer.accept("]")) {
    if (!type.shape.empty()) LATHE_DO(lexer.expect(","));
    if (type.shape.size() == kMaxRank)
      return lexer.error(lexer.peek(), fmt::format("a tensor has at most {} dims", kMaxRank),
                         code::kTooLarge);
    LATHE_TRY(Dim dim, parse_dim(lexer));
    type.shape.push_back(std::move(dim));
  }
  if (lexer.accept("layout")) {
    LATHE_TRY(type.layout, parse_layout(lexer));
  }
  if (Status status = check_type(type); !status.ok())
    return lexer.error(start, status.error().message, status.error().code.c_str());
  return type;
}

}  // namespace lathe
