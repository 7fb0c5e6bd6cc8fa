// Reading types in text IR; to_string writes them.
#pragma once
#include "ir/support/lexer.h"
#include "ir/support/result.h"
#include "ir/type/tensor_type.h"

namespace lathe {

Result<DType> parse_dtype(Lexer& lexer);
// "(0, 2, 3, 1)"; "layout" has been read.
Result<Layout> parse_layout(Lexer& lexer);
// A type, checked by check_type; errors stand at its first token.
Result<TensorType> parse_type(Lexer& lexer);

}  // namespace lathe
