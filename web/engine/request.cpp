// Typed reading of requests.
#include "web/engine/request.h"

#include <fmt/format.h>

#include <charconv>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

template <class T>
Result<T> or_fallback(const Request& request, std::string_view key, T fallback,
                      Result<T> (Request::*read)(std::string_view) const) {
  if (!request.has(key)) return fallback;
  return (request.*read)(key);
}

}  // namespace

Diag Request::bad(std::string_view key, std::string message) const {
  json::MaybeValue member = root().member(key);
  return json::error_at(member ? *member : root(), locs_, code::kBadValue, std::move(message));
}

bool Request::has(std::string_view key) const {
  json::MaybeValue member = root().member(key);
  return member && !(*member).is_null();
}

Result<std::string> Request::text(std::string_view key) const {
  json::MaybeValue member = root().member(key);
  if (!member || (*member).kind() != json::Kind::string)
    return bad(key, fmt::format("'{}' is {}, expected a string", key,
                                member ? json::kind_name((*member).kind()) : "missing"));
  return std::string((*member).string());
}

Result<int64_t> Request::integer(std::string_view key) const {
  json::MaybeValue member = root().member(key);
  if (!member || (*member).kind() != json::Kind::integer)
    return bad(key, fmt::format("'{}' is {}, expected an integer", key,
                                member ? json::kind_name((*member).kind()) : "missing"));
  return (*member).integer();
}

Result<std::string> Request::text(std::string_view key, std::string fallback) const {
  return or_fallback<std::string>(*this, key, std::move(fallback), &Request::text);
}

Result<int64_t> Request::integer(std::string_view key, int64_t fallback) const {
  return or_fallback<int64_t>(*this, key, fallback, &Request::integer);
}

Result<bool> Request::flag(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  json::Value member = *root().member(key);
  if (member.kind() != json::Kind::boolean)
    return bad(key, fmt::format("'{}' is {}, expected true or false", key,
                                json::kind_name(member.kind())));
  return member.boolean();
}

Result<std::vector<std::string>> Request::texts(std::string_view key) const {
  std::vector<std::string> result;
  if (!has(key)) return result;
  json::Value list = *root().member(key);
  if (list.kind() != json::Kind::array)
    return bad(key, fmt::format("'{}' is {}, expected an array of strings", key,
                                json::kind_name(list.kind())));
  for (json::Value element : list.elements()) {
    if (element.kind() != json::Kind::string)
      return bad(key, fmt::format("'{}' holds {}, expected strings", key,
                                  json::kind_name(element.kind())));
    result.emplace_back(element.string());
  }
  return result;
}

Status Request::options(const std::vector<std::string_view>& keys, CompileRequest& out) const {
  const LocateFn locate = [&](size_t offset) { return json::locate(document_, offset, locs_); };
  return apply_some_options(root(), locate, keys, out);
}

Result<std::optional<uint64_t>> Request::seed(std::string_view key) const {
  constexpr std::string_view kPrefix = "random:";
  LATHE_TRY(std::string value, text(key, ""));
  if (value.empty()) return std::optional<uint64_t>();
  uint64_t seed = 0;
  if (value.compare(0, kPrefix.size(), kPrefix) == 0) {
    const char* end = value.data() + value.size();
    auto [stop, error] = std::from_chars(value.data() + kPrefix.size(), end, seed);
    if (error == std::errc() && stop == end) return std::optional<uint64_t>(seed);
  }
  return bad(key, fmt::format("'{}' is '{}', expected 'random:SEED'", key, value));
}

}  // namespace lathe
