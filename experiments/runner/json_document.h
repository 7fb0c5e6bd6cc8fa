// A JSON text as a tree that remembers where each key and value stands, so that an error can point
// at it. nlohmann's SAX parser does the grammar; positions come from walking the text beside it.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/loc.h"
#include "ir/support/result.h"

namespace lathe {

struct JsonMember;

struct JsonValue {
  enum class Kind : uint8_t { null, boolean, number, string, array, object };
  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0;
  std::string string;               // also the number as it was written
  std::vector<JsonValue> items;     // of an array
  std::vector<JsonMember> members;  // of an object, in the order of the text; keys are unique
  size_t offset = 0;                // in bytes, where the value starts

  const JsonMember* find(std::string_view key) const;
};

struct JsonMember {
  std::string key;
  size_t key_offset = 0;
  JsonValue value;
};

// "a string", "an object", ...: for messages.
std::string_view kind_name(JsonValue::Kind kind);

// A text with its name, for making locations from offsets.
struct JsonText {
  std::string file;
  std::string text;
  // The line and column of an offset, with the line's text for the caret.
  Loc locate(size_t offset, LocTable& locs) const;
};

// Errors: syntax, a key written twice, more than 64 levels of nesting; each with its place.
Result<JsonValue> parse_json(const JsonText& source, LocTable& locs);

}  // namespace lathe
