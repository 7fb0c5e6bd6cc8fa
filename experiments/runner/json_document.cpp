// Builds the tree of json_document.h from nlohmann's SAX events.
#include "experiments/runner/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

constexpr size_t kMaxDepth = 64;

// Receives events in the order of the text. Between two events stand only white space, commas and
// colons, so the start of each token follows from the end of the one before.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(const JsonText& source, LocTable& locs) : source_(source), locs_(locs) {}

  JsonValue root;
  Diag error;

  bool null() override { return add({}, 4); }
  bool boolean(bool value) override {
    JsonValue v;
    v.kind = JsonValue::Kind::boolean;
    v.boolean = value;
    return add(std::move(v), value ? 4 : 5);
  }
  bool number_integer(number_integer_t value) override {
    return add_number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add_number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add_number(value); }
  bool string(string_t& value) override {
    JsonValue v;
    v.kind = JsonValue::Kind::string;
    v.string = std::move(value);
    return add(std::move(v), string_length(token_start()));
  }
  bool binary(binary_t&) override { return false; }  // not in JSON text

  bool start_object(size_t) override { return open(JsonValue::Kind::object); }
  bool start_array(size_t) override { return open(JsonValue::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    size_t start = token_start();
    position_ = start + string_length(start);
    JsonValue& object = *stack_.back();
    if (object.find(value) != nullptr)
      return fail(start, fmt::format("key '{}' is written twice", value));
    object.members.push_back({std::move(value), start, {}});
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    size_t offset = position == 0 ? 0 : position - 1;
    std::string found = offset >= source_.text.size()
                            ? "the text ends too early"
                            : fmt::format("unexpected {}", quote(source_.text[offset]));
    return fail(std::min(offset, source_.text.size()), "not valid JSON: " + found);
  }

 private:
  static std::string quote(char c) {
    return c >= ' ' && c <= '~' ? fmt::format("'{}'", c)
                                : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
  }

  bool fail(size_t offset, std::string message) {
    error = {code::kSyntax, source_.locate(offset, locs_), std::move(message)};
    return false;
  }

  size_t token_start() const {
    size_t at = source_.text.find_first_not_of(" \t\r\n,:", position_);
    return at == std::string::npos ? source_.text.size() : at;
  }

  // Bytes of the string token at `start`, quotes included.
  size_t string_length(size_t start) const {
    size_t at = start + 1;
    while (at < source_.text.size() && source_.text[at] != '"')
      at += source_.text[at] == '\\' ? 2 : 1;
    return at + 1 - start;
  }

  bool add_number(double value) {
    size_t start = token_start();
    size_t end = source_.text.find_first_not_of("+-.0123456789eE", start);
    size_t length = (end == std::string::npos ? source_.text.size() : end) - start;
    JsonValue v;
    v.kind = JsonValue::Kind::number;
    v.number = value;
    v.string = source_.text.substr(start, length);
    return add(std::move(v), length);
  }

  JsonValue* place(JsonValue value) {
    value.offset = token_start();
    if (stack_.empty()) {
      root = std::move(value);
      return &root;
    }
    JsonValue& parent = *stack_.back();
    if (parent.kind == JsonValue::Kind::array) {
      parent.items.push_back(std::move(value));
      return &parent.items.back();
    }
    parent.members.back().value = std::move(value);
    return &parent.members.back().value;
  }

  bool add(JsonValue value, size_t length) {
    size_t start = token_start();
    place(std::move(value));
    position_ = start + length;
    return true;
  }

  // Pointers on the stack stay valid: a container grows only while it is the innermost one.
  bool open(JsonValue::Kind kind) {
    size_t start = token_start();
    if (stack_.size() == kMaxDepth)
      return fail(start, fmt::format("more than {} levels of nesting", kMaxDepth));
    JsonValue value;
    value.kind = kind;
    stack_.push_back(place(std::move(value)));
    position_ = start + 1;
    return true;
  }

  bool close() {
    position_ = token_start() + 1;
    stack_.pop_back();
    return true;
  }

  const JsonText& source_;
  LocTable& locs_;
  std::vector<JsonValue*> stack_;
  size_t position_ = 0;  // the end of the last token
};

}  // namespace

const JsonMember* JsonValue::find(std::string_view key) const {
  for (const JsonMember& member : members)
    if (member.key == key) return &member;
  return nullptr;
}

std::string_view kind_name(JsonValue::Kind kind) {
  switch (kind) {
    case JsonValue::Kind::null:
      return "null";
    case JsonValue::Kind::boolean:
      return "true or false";
    case JsonValue::Kind::number:
      return "a number";
    case JsonValue::Kind::string:
      return "a string";
    case JsonValue::Kind::array:
      return "a list";
    case JsonValue::Kind::object:
      return "an object";
  }
  return "";
}

Loc JsonText::locate(size_t offset, LocTable& locs) const {
  offset = std::min(offset, text.size());
  size_t line_start = offset == 0 ? 0 : text.rfind('\n', offset - 1);
  line_start = line_start == std::string::npos || offset == 0 ? 0 : line_start + 1;
  size_t line_end = std::min(text.find('\n', offset), text.size());
  auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  return locs.text(file, static_cast<int>(line) + 1, static_cast<int>(offset - line_start) + 1,
                   text.substr(line_start, line_end - line_start));
}

Result<JsonValue> parse_json(const JsonText& source, LocTable& locs) {
  TreeBuilder builder(source, locs);
  if (!nlohmann::json::sax_parse(source.text, &builder)) return std::move(builder.error);
  return std::move(builder.root);
}

}  // namespace lathe
