// Ranges of a file, given one after the other.
#include "web/engine/remote_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Together: JSON documents and the directory, never weights.
constexpr uint64_t kMaxRange = uint64_t{1} << 30;

}  // namespace

Json needed_json(const RemoteFile& file) {
  Json list = Json::array();
  for (const NeededRange& range : file.needed()) {
    Json one{{"begin", range.begin}, {"size", range.size}};
    if (range.is_deflated) one["inflated"] = range.inflated;
    list.push_back(std::move(one));
  }
  return list;
}

// The ranges of the request, whose bytes stand one behind the other.
Status take_ranges(const Request& request, RemoteFile& file) {
  if (!request.has("ranges")) return Ok{};
  json::Value list = *request.root().member("ranges");
  if (list.kind() != json::Kind::array) return request.bad("ranges", "expected an array of ranges");
  std::string_view rest = request.bytes().text();
  for (json::Value range : list.elements()) {
    auto number = [&](std::string_view key) -> Result<uint64_t> {
      json::MaybeValue member =
          range.kind() == json::Kind::object ? range.member(key) : json::MaybeValue();
      if (!member || (*member).kind() != json::Kind::integer || (*member).integer() < 0)
        return request.bad("ranges", fmt::format("a range needs '{}', a number from 0", key));
      return static_cast<uint64_t>((*member).integer());
    };
    LATHE_TRY(uint64_t begin, number("begin"));
    const bool is_deflated = static_cast<bool>(range.member("inflated"));
    LATHE_TRY(uint64_t size, number(is_deflated ? "inflated" : "size"));
    if (size > rest.size())
      return request.bad("ranges",
                         fmt::format("{} bytes are left for a range of {}", rest.size(), size));
    LATHE_DO(file.give(begin, is_deflated, rest.substr(0, static_cast<size_t>(size))));
    rest.remove_prefix(static_cast<size_t>(size));
  }
  return Ok{};
}

FileSource RemoteFile::source() {
  FileSource source;
  source.size = size_;
  source.read = [this](uint64_t begin, uint64_t size) { return read(begin, size); };
  source.inflate = [this](uint64_t begin, uint64_t size, uint64_t max_bytes) {
    return inflate(begin, size, max_bytes);
  };
  return source;
}

Diag RemoteFile::need(NeededRange range) {
  if (range.size > kMaxRange || range.inflated > kMaxRange)
    return {code::kTooLarge, Loc::unknown(),
            fmt::format("{} bytes at {} of the file, at most {} are read at once", range.size,
                        range.begin, kMaxRange)};
  const bool is_known = std::any_of(needed_.begin(), needed_.end(), [&](const NeededRange& other) {
    return other.begin == range.begin && other.is_deflated == range.is_deflated;
  });
  if (!is_known) needed_.push_back(range);
  return {code::kUnavailable, Loc::unknown(),
          fmt::format("{} bytes at {} of the file are not here yet", range.size, range.begin)};
}

Result<FileBytes> RemoteFile::read(uint64_t begin, uint64_t size) {
  auto after = plain_.upper_bound(begin);
  if (size == 0) return own_bytes({});
  if (after != plain_.begin()) {
    const auto& [first, bytes] = *std::prev(after);
    if (begin - first <= bytes.size && size <= bytes.size - (begin - first))
      return bytes.slice(static_cast<size_t>(begin - first), static_cast<size_t>(size));
  }
  return need({begin, size, false, 0});
}

Result<FileBytes> RemoteFile::inflate(uint64_t begin, uint64_t size, uint64_t max_bytes) {
  auto found = inflated_.find(begin);
  if (found != inflated_.end() && found->second.size <= max_bytes) return found->second;
  return need({begin, size, true, max_bytes});
}

Status RemoteFile::give(uint64_t begin, bool is_deflated, std::string_view bytes) {
  auto range = std::find_if(needed_.begin(), needed_.end(), [&](const NeededRange& needed) {
    return needed.begin == begin && needed.is_deflated == is_deflated;
  });
  if (range == needed_.end())
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("nobody asked for the range at byte {}", begin)};
  const uint64_t expected = is_deflated ? range->inflated : range->size;
  if (bytes.size() != expected)
    return Diag{code::kBadArchive, Loc::unknown(),
                fmt::format("the range at byte {} has {} bytes, expected {}", begin, bytes.size(),
                            expected)};
  (is_deflated ? inflated_ : plain_)[begin] = own_bytes(std::string(bytes));
  needed_.erase(range);
  return Ok{};
}

}  // namespace lathe
