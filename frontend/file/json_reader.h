// Reading of JSON into structs by tables of fields. A struct's own `read` is found by its argument.
//
// The reader keeps the first error; after it every read does nothing, so that the tables stay
// plain. Recursion is as deep as the document, which the JSON parser bounds.
#pragma once
#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/file/json.h"
#include "ir/support/diag_codes.h"

namespace lathe::json {

class Reader {
 public:
  // `code` is that of errors about what the document says.
  explicit Reader(LocTable& locs, const char* code = code::kBadModel) : locs_(locs), code_(code) {}

  bool failed() const { return failed_; }
  Diag take_error() && { return std::move(error_); }
  void fail(Value at, std::string message, const char* code = nullptr) {
    if (failed_) return;
    failed_ = true;
    error_ = error_at(at, locs_, code ? code : code_, std::move(message));
  }
  bool expect(Value value, Kind kind) {
    if (value.kind() == kind) return !failed_;
    fail(value, fmt::format("expected {}, found {}", kind_name(kind), kind_name(value.kind())));
    return false;
  }

 private:
  LocTable& locs_;
  const char* code_;
  bool failed_ = false;
  Diag error_;
};

// One row of a struct's table.
template <class T>
struct Field {
  std::string_view key;
  T& target;
  bool is_required;
  bool is_seen = false;
};
template <class T>
Field<T> required(std::string_view key, T& target) {
  return {key, target, true};
}
template <class T>
Field<T> optional(std::string_view key, T& target) {
  return {key, target, false};
}

inline void read(Reader& reader, Value value, bool& out) {
  if (reader.expect(value, Kind::boolean)) out = value.boolean();
}
inline void read(Reader& reader, Value value, int64_t& out) {
  if (reader.expect(value, Kind::integer)) out = value.integer();
}
inline void read(Reader& reader, Value value, std::string& out) {
  if (reader.expect(value, Kind::string)) out = value.string();
}
// Infinities and NaN are strings in the format.
inline void read(Reader& reader, Value value, double& out) {
  if (value.kind() == Kind::integer || value.kind() == Kind::number) {
    out = value.number();
  } else if (reader.expect(value, Kind::string)) {
    std::string_view text = value.string();
    if (text == "Infinity")
      out = std::numeric_limits<double>::infinity();
    else if (text == "-Infinity")
      out = -std::numeric_limits<double>::infinity();
    else if (text == "NaN")
      out = std::numeric_limits<double>::quiet_NaN();
    else
      reader.fail(value, fmt::format("expected a number, found \"{}\"", text.substr(0, 40)));
  }
}

template <class T>
void read(Reader& reader, Value value, std::optional<T>& out) {
  if (!value.is_null()) read(reader, value, out.emplace());
}
template <class T>
void read(Reader& reader, Value value, std::vector<T>& out) {
  if (!reader.expect(value, Kind::array)) return;
  out.reserve(value.size());
  for (Value element : value.elements()) {
    if (reader.failed()) return;
    T item{};
    read(reader, element, item);
    out.push_back(std::move(item));
  }
}
template <class T, class Less>
void read(Reader& reader, Value value, std::map<std::string, T, Less>& out) {
  if (!reader.expect(value, Kind::object)) return;
  for (auto [key, member] : value.members()) {
    if (reader.failed()) return;
    read(reader, member, out[std::string(key)]);
  }
}

// Reads the members of an object that the rows name, in any order; null leaves an optional one as
// it is.
template <class... Fields>
void read_object(Reader& reader, Value value, Fields... fields) {
  if (!reader.expect(value, Kind::object)) return;
  auto visit = [&](std::string_view key, Value member, auto& field) {
    if (field.key != key) return false;
    field.is_seen = true;
    if (field.is_required || !member.is_null()) read(reader, member, field.target);
    return true;
  };
  for (auto [key, member] : value.members()) {
    (visit(key, member, fields) || ...);
    if (reader.failed()) return;
  }
  auto check = [&](const auto& field) {
    if (field.is_required && !field.is_seen)
      reader.fail(value, fmt::format("key \"{}\" is missing", field.key));
  };
  (check(fields), ...);
}

}  // namespace lathe::json
