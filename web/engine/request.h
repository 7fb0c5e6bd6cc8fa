// What a caller asks, and what it gets: one JSON object each, with bytes beside them.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/driver/options.h"
#include "frontend/file/file_bytes.h"
#include "frontend/file/json.h"
#include "ir/support/result.h"

namespace lathe {

using Json = nlohmann::ordered_json;

// Reads the members of a request. Missing ones have a default; those without are `bad-value`s, and
// so are members of another kind. Locations go to `locs`.
class Request {
 public:
  Request(const json::Document& document, FileBytes bytes, LocTable& locs)
      : document_(document), bytes_(std::move(bytes)), locs_(locs) {}

  Result<std::string> text(std::string_view key) const;
  Result<std::string> text(std::string_view key, std::string fallback) const;
  Result<int64_t> integer(std::string_view key) const;
  Result<int64_t> integer(std::string_view key, int64_t fallback) const;
  Result<bool> flag(std::string_view key, bool fallback) const;
  Result<std::vector<std::string>> texts(std::string_view key) const;  // or empty
  bool has(std::string_view key) const;
  // The options of compiling that have these keys, read as everywhere else.
  Status options(const std::vector<std::string_view>& keys, CompileRequest& out) const;
  // "random:SEED" as its seed, anything else as nothing.
  Result<std::optional<uint64_t>> seed(std::string_view key) const;

  json::Value root() const { return document_.root(); }
  // Beside the JSON; not owned: only valid during the request.
  const FileBytes& bytes() const { return bytes_; }
  LocTable& locs() const { return locs_; }
  // An error at a member, or at the request when there is none.
  Diag bad(std::string_view key, std::string message) const;

 private:
  const json::Document& document_;
  FileBytes bytes_;
  LocTable& locs_;
};

struct Answer {
  Json json = Json::object();
  FileBytes bytes = {};
};

}  // namespace lathe
