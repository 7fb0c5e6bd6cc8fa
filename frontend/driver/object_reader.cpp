// The kinds of members, and what is said of a wrong one.
#include "frontend/driver/object_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

using json::Kind;
using json::Member;

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string near = nearest(word, candidates);
  return near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near);
}

}  // namespace

Diag ObjectReader::error(json::Value value, std::string message) const {
  return {code::kBadValue, at(value), std::move(message)};
}

Diag ObjectReader::wrong_kind(const Member& member, std::string_view expected) const {
  return error(member.value, fmt::format("'{}' is {}, got {}", member.key, expected,
                                         kind_name(member.value.kind())));
}

// A key's own place is not in the document.
Loc ObjectReader::at_key(const Member& member) const {
  std::string_view text = member.value.document().text;
  size_t at = text.rfind(fmt::format("\"{}\"", member.key), member.value.offset());
  return locate_(at == std::string_view::npos ? member.value.offset() : at);
}

Diag ObjectReader::unknown_key(const Member& member, const std::vector<std::string>& keys) const {
  std::string near = did_you_mean(member.key, keys);
  if (near.empty()) near = fmt::format("; the keys are {}", fmt::join(keys, ", "));
  return {code::kUnknownKey, at_key(member), fmt::format("no key named '{}'{}", member.key, near)};
}

Diag ObjectReader::repeated_key(const Member& member) const {
  return {code::kBadValue, at_key(member), fmt::format("key '{}' is written twice", member.key)};
}

Status ObjectReader::string(const Member& member, std::string& out) const {
  if (member.value.kind() != Kind::string) return wrong_kind(member, "a string");
  out = member.value.string();
  return Ok{};
}

Status ObjectReader::word(const Member& member, const std::vector<std::string>& words,
                          std::string& out) const {
  LATHE_DO(string(member, out));
  if (std::find(words.begin(), words.end(), out) == words.end())
    return error(member.value, fmt::format("'{}' is one of {}, got '{}'{}", member.key,
                                           fmt::join(words, ", "), out, did_you_mean(out, words)));
  return Ok{};
}

Result<int64_t> ObjectReader::integer(std::string_view what, json::Value value, int64_t min,
                                      int64_t max) const {
  if (value.kind() == Kind::integer && value.integer() >= min && value.integer() <= max)
    return value.integer();
  std::string got(kind_name(value.kind()));
  if (value.kind() == Kind::integer || value.kind() == Kind::number)
    got = fmt::format("{}", value.number());
  if (value.kind() == Kind::string) got = fmt::format("'{}'", value.string());
  return error(value,
               fmt::format("'{}' is a whole number from {} to {}, got {}", what, min, max, got));
}

Result<std::vector<json::Value>> ObjectReader::one_or_more(const Member& member) const {
  std::vector<json::Value> values;
  if (member.value.kind() != Kind::array) return std::vector<json::Value>{member.value};
  for (json::Value item : member.value.elements()) values.push_back(item);
  if (values.empty()) return error(member.value, fmt::format("'{}' is empty", member.key));
  return values;
}

}  // namespace lathe
