// A file in the page's hands, of which the engine has the ranges that it was given.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/file/file_source.h"
#include "web/engine/request.h"

namespace lathe {

// A range to hand over: bytes as they are, or what they inflate to (raw deflate, `inflated` bytes).
struct NeededRange {
  uint64_t begin = 0;
  uint64_t size = 0;
  bool is_deflated = false;
  uint64_t inflated = 0;
};

// Whoever reads what is not here yet gets an `unavailable`, and the range stands in needed(): give
// it, and read again.
class RemoteFile {
 public:
  explicit RemoteFile(uint64_t size) : size_(size) {}

  uint64_t size() const { return size_; }
  const std::vector<NeededRange>& needed() const { return needed_; }
  // The answer to one needed range; its bytes are copied. A `bad-value` when nobody asked for it or
  // when the length is wrong.
  Status give(uint64_t begin, bool is_deflated, std::string_view bytes);
  // Reads through this file, which must outlive the source.
  FileSource source();
  // Lets everything go that was given: the file is open.
  void forget() { plain_.clear(), inflated_.clear(); }

 private:
  Result<FileBytes> read(uint64_t begin, uint64_t size);
  Result<FileBytes> inflate(uint64_t begin, uint64_t size, uint64_t max_bytes);
  Diag need(NeededRange range);

  uint64_t size_;
  std::map<uint64_t, FileBytes> plain_;     // by begin
  std::map<uint64_t, FileBytes> inflated_;  // by begin of the packed bytes
  std::vector<NeededRange> needed_;
};

// The member "ranges" of a request, [{"begin", "size"}] or [{"begin", "inflated"}], whose bytes
// stand one behind the other in the request's.
Status take_ranges(const Request& request, RemoteFile& file);
// What to ask the caller for, in the same form: [{"begin", "size"}], and "inflated" with the size
// of what the range inflates to.
Json needed_json(const RemoteFile& file);

}  // namespace lathe
