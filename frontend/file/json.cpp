// The JSON parser: nlohmann's SAX parser fills the token array. Its exceptions are only made, never
// thrown: the handler's parse_error receives them.
#include "frontend/file/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "ir/support/diag_codes.h"

namespace lathe::json {
namespace {

// Feeds the lexer and tells the handler how far it has read.
class CountingIterator {
 public:
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  CountingIterator(const char* at, const char** progress) : at_(at), progress_(progress) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *progress_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** progress_;
};

// "[json.exception.parse_error.101] parse error at line 1, column 4: syntax error ...": the place
// is ours to give.
std::string plain_message(std::string_view what) {
  if (size_t colon = what.find(": "); colon != what.npos) what.remove_prefix(colon + 2);
  return std::string(what.substr(0, 300));
}

// Moves `at` from byte `begin` to byte `end`.
void pass_lines(std::string_view text, size_t begin, size_t end, Document::LineMark& at) {
  const std::string_view passed = text.substr(0, end);
  for (size_t i = passed.find('\n', begin); i != passed.npos; i = passed.find('\n', i + 1))
    at = {at.line + 1, static_cast<uint32_t>(i + 1)};
}

void mark_lines(Document& document) {
  Document::LineMark at{1, 0};
  for (size_t i = 0; i <= document.text.size(); i += Document::kBytesPerMark) {
    document.line_marks.push_back(at);
    pass_lines(document.text, i, i + Document::kBytesPerMark, at);
  }
}

class Handler {
 public:
  using Base = nlohmann::json;

  Handler(Document& document, const char** progress, const Limits& limits, LocTable& locs)
      : document_(document), progress_(progress), limits_(limits), locs_(locs) {}

  bool null() {
    add(Kind::null);
    return true;
  }
  bool boolean(bool value) {
    add(Kind::boolean).integer = value;
    return true;
  }
  bool number_integer(Base::number_integer_t value) {
    add(Kind::integer).integer = value;
    return true;
  }
  bool number_unsigned(Base::number_unsigned_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX))
      return number_integer(static_cast<int64_t>(value));
    add(Kind::number).number = static_cast<double>(value);
    return true;
  }
  bool number_float(Base::number_float_t value, const Base::string_t&) {
    add(Kind::number).number = value;
    return true;
  }
  bool string(Base::string_t& value) {
    add_string(value);
    return true;
  }
  bool key(Base::string_t& value) {
    add_string(value);
    --document_.tokens[open_.back()].length;  // a member counts once
    return true;
  }
  bool binary(Base::binary_t&) { return false; }
  bool start_object(size_t) { return open(Kind::object); }
  bool start_array(size_t) { return open(Kind::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  template <class Exception>
  bool parse_error(size_t, const std::string&, const Exception& exception) {
    size_t offset = static_cast<size_t>(*progress_ - document_.text.data());
    fail(offset == 0 ? 0 : offset - 1, plain_message(exception.what()));
    return false;
  }

  void fail(size_t offset, std::string message) {
    if (error_.code.empty())
      error_ = {code::kSyntax, locate(document_, offset, locs_), std::move(message)};
  }
  const Diag& error() const { return error_; }

 private:
  // The token that was just read began behind the previous one and its separators.
  Token& add(Kind kind) {
    std::string_view text = document_.text;
    while (end_ < text.size() && std::string_view(" \t\r\n,:").find(text[end_]) != text.npos)
      ++end_;
    if (!open_.empty()) ++document_.tokens[open_.back()].length;
    Token token;
    token.kind = kind;
    token.offset = static_cast<uint32_t>(end_);
    token.end = static_cast<uint32_t>(document_.tokens.size() + 1);
    end_ = static_cast<size_t>(*progress_ - text.data());
    return document_.tokens.emplace_back(token);
  }
  void add_string(const std::string& value) {
    Token& token = add(Kind::string);
    token.text_begin = static_cast<uint32_t>(document_.decoded.size());
    token.length = value.size();
    document_.decoded += value;
  }
  bool open(Kind kind) {
    add(kind).length = 0;
    open_.push_back(static_cast<uint32_t>(document_.tokens.size() - 1));
    if (open_.size() <= limits_.max_depth) return true;
    fail(document_.tokens.back().offset,
         fmt::format("nested deeper than {} levels", limits_.max_depth));
    return false;
  }
  bool close() {
    document_.tokens[open_.back()].end = static_cast<uint32_t>(document_.tokens.size());
    open_.pop_back();
    end_ = static_cast<size_t>(*progress_ - document_.text.data());
    return true;
  }

  Document& document_;
  const char** progress_;
  const Limits& limits_;
  LocTable& locs_;
  size_t end_ = 0;  // behind the token last read
  std::vector<uint32_t> open_;
  Diag error_;
};

}  // namespace

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "a boolean";
    case Kind::integer:
      return "an integer";
    case Kind::number:
      return "a number";
    case Kind::string:
      return "a string";
    case Kind::array:
      return "an array";
    case Kind::object:
      return "an object";
  }
  return "";
}

Kind Value::kind() const { return document_->tokens[index_].kind; }
bool Value::boolean() const { return document_->tokens[index_].integer != 0; }
int64_t Value::integer() const { return document_->tokens[index_].integer; }
double Value::number() const {
  const Token& token = document_->tokens[index_];
  return token.kind == Kind::integer ? static_cast<double>(token.integer) : token.number;
}
std::string_view Value::string() const {
  const Token& token = document_->tokens[index_];
  return std::string_view(document_->decoded).substr(token.text_begin, token.length);
}
uint32_t Value::size() const { return static_cast<uint32_t>(document_->tokens[index_].length); }
size_t Value::offset() const { return document_->tokens[index_].offset; }
Children<Value> Value::elements() const {
  return {*document_, index_ + 1, document_->tokens[index_].end};
}
Children<Member> Value::members() const {
  return {*document_, index_ + 1, document_->tokens[index_].end};
}

MaybeValue Value::member(std::string_view key) const {
  if (kind() != Kind::object) return {};
  for (auto [name, value] : members())
    if (name == key) return value;
  return {};
}

Result<std::unique_ptr<Document>> parse(std::string_view text, std::string file, LocTable& locs,
                                        const Limits& limits) {
  auto document = std::make_unique<Document>();
  document->file = std::move(file);
  document->text = text;
  if (text.size() > limits.max_bytes || text.size() > UINT32_MAX)
    return Diag{
        code::kTooLarge, locs.text(document->file, 0, 0),
        fmt::format("{} bytes of JSON, at most {} are read", text.size(), limits.max_bytes)};
  mark_lines(*document);
  document->tokens.reserve(text.size() / 8 + 8);
  document->decoded.reserve(text.size() / 2);
  const char* progress = text.data();
  Handler handler(*document, &progress, limits, locs);
  bool ok =
      nlohmann::json::sax_parse(CountingIterator(text.data(), &progress),
                                CountingIterator(text.data() + text.size(), &progress), &handler);
  if (ok) return document;
  handler.fail(0, "not a JSON document");
  return handler.error();
}

Loc locate(const Document& document, size_t offset, LocTable& locs) {
  const std::string_view text = document.text;
  offset = std::min(offset, text.size());
  Document::LineMark at = document.line_marks[offset / Document::kBytesPerMark];
  pass_lines(text, offset - offset % Document::kBytesPerMark, offset, at);
  const size_t column = offset - at.line_begin;
  std::string_view line = text.substr(at.line_begin, column + LocTable::kKeptOnEachSide);
  line = line.substr(0, line.find('\n', column));
  return locs.text(document.file, static_cast<int>(at.line), static_cast<int>(column) + 1, line);
}

Diag error_at(Value value, LocTable& locs, const char* code, std::string message) {
  return {code, locate(value.document(), value.offset(), locs), std::move(message)};
}

}  // namespace lathe::json
