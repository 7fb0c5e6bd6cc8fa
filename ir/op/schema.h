// ATen schema strings, as an op row's imports and PyTorch write them:
// "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor".
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// Base types. int and SymInt are one type here: sizes may always be symbolic.
enum class SchemaType : uint8_t {
  tensor,
  scalar,
  integer,
  number,  // float
  boolean,
  string,
  dtype,
  layout,
  device,
  memory_format,
  generator,
};

struct SchemaArg {
  std::string name;
  SchemaType type = SchemaType::tensor;
  bool is_optional = false;            // the argument itself may be None: "Tensor?", "int[1]?"
  bool is_list = false;                // "int[2]", "Tensor[]", "Tensor?[]"
  bool has_optional_elements = false;  // "Tensor?[]"
  int list_size = 0;                   // k of "int[k]": a list of length 1 stands for k copies
  bool is_written = false;             // alias set "(a!)"
  bool is_keyword_only = false;
  std::optional<Attr> default_value;  // None is monostate; lists have the list's type
};

struct SchemaReturn {
  SchemaType type = SchemaType::tensor;
  bool is_list = false;
};

struct Schema {
  std::string name;  // with overload, without namespace: "softmax.int", "linear"
  std::vector<SchemaArg> args;
  std::vector<SchemaReturn> returns;  // empty for "-> ()"
  bool is_in_place = false;           // the first argument is written and is the result

  const SchemaArg* find(std::string_view arg) const;
};

// Defaults are converted to the argument's type; numbers of enums are c10's (dtype=4 is i64). The
// Diag is a syntax error with the offset in `text`.
Result<Schema> parse_schema(std::string_view text);

}  // namespace lathe
