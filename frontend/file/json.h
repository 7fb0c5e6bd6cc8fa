// JSON documents with positions. A document is one flat array of tokens in pre-order over one
// buffer of decoded text, so that reading a model of some megabytes costs a few allocations.
//
// Errors point at line and column. Nesting and size are bounded; no input crashes or hangs the
// parser.
#pragma once
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/support/result.h"

namespace lathe::json {

enum class Kind : uint8_t { null, boolean, integer, number, string, array, object };
std::string_view kind_name(Kind kind);

struct Document;
struct Member;
template <class Item>
class Children;

// A handle to one value of a document; cheap to copy, valid as long as the document.
class Value {
 public:
  Value(const Document& document, uint32_t index) : document_(&document), index_(index) {}

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  // Each only when the kind says so.
  bool boolean() const;
  int64_t integer() const;
  double number() const;  // of an integer or a number
  std::string_view string() const;
  uint32_t size() const;  // elements of an array, members of an object
  size_t offset() const;  // byte of the text where the value starts

  // The member of an object, or a null handle; linear in the number of members.
  class MaybeValue member(std::string_view key) const;

  // for (Value element : value.elements()); for (auto [key, member] : value.members()).
  Children<Value> elements() const;
  Children<Member> members() const;

  const Document& document() const { return *document_; }
  uint32_t index() const { return index_; }

 private:
  const Document* document_;
  uint32_t index_;
};

// A value or nothing.
class MaybeValue {
 public:
  MaybeValue() = default;
  MaybeValue(Value value) : document_(&value.document()), index_(value.index()) {}
  explicit operator bool() const { return document_ != nullptr; }
  Value operator*() const { return {*document_, index_}; }

 private:
  const Document* document_ = nullptr;
  uint32_t index_ = 0;
};

// One token. Objects hold key and value alternately; `end` is the index behind the subtree.
struct Token {
  Kind kind = Kind::null;
  uint32_t end = 0;
  uint32_t offset = 0;
  uint32_t text_begin = 0;  // of strings, in Document::decoded
  union {
    int64_t integer = 0;
    double number;
    uint64_t length;  // of strings: bytes; of arrays and objects: elements or members
  };
};

struct Document {
  std::string file;       // as named in messages
  std::string_view text;  // what was parsed; the caller keeps it alive
  std::vector<Token> tokens;
  std::string decoded;  // the text of all strings, escapes resolved
  // Where lines are, every kBytesPerMark bytes: what lies before a byte is not counted each time.
  struct LineMark {
    uint32_t line;        // of the byte, from 1
    uint32_t line_begin;  // where that line starts
  };
  static constexpr size_t kBytesPerMark = 4096;
  std::vector<LineMark> line_marks;

  Value root() const { return {*this, 0}; }
};

struct Member {
  std::string_view key;
  Value value;
};

// What lies in an array (Item: Value) or an object (Item: Member), to be iterated over.
template <class Item>
class Children {
 public:
  Children(const Document& document, uint32_t begin, uint32_t end)
      : document_(document), begin_(begin), end_(end) {}
  struct Iterator {
    const Document& document;
    uint32_t index;
    Item operator*() const {
      if constexpr (kHasKeys)
        return {Value(document, index).string(), value()};
      else
        return value();
    }
    Iterator& operator++() {
      index = document.tokens[value().index()].end;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index != other.index; }

    static constexpr bool kHasKeys = std::is_same_v<Item, Member>;
    // Behind its key, where it has one.
    Value value() const { return {document, index + (kHasKeys ? 1 : 0)}; }
  };
  Iterator begin() const { return {document_, begin_}; }
  Iterator end() const { return {document_, end_}; }

 private:
  const Document& document_;
  uint32_t begin_;
  uint32_t end_;
};

struct Limits {
  size_t max_bytes = size_t{128} << 20;  // of text; offsets have 32 bits
  uint32_t max_depth = 256;
};

// `file` names the text in locations, which go to `locs`. `text` must outlive the document.
Result<std::unique_ptr<Document>> parse(std::string_view text, std::string file, LocTable& locs,
                                        const Limits& limits = {});

// A location at a byte of the document.
Loc locate(const Document& document, size_t offset, LocTable& locs);

// An error at a value.
Diag error_at(Value value, LocTable& locs, const char* code, std::string message);

}  // namespace lathe::json
