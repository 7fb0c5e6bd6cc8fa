// Bytes of a file, mapped read-only, or of memory that somebody owns.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lathe {

struct FileBytes {
  const std::byte* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;  // the mapping or buffer; may outlive this struct

  std::string_view text() const { return {reinterpret_cast<const char*>(data), size}; }
  // Only when begin + length <= size.
  FileBytes slice(size_t begin, size_t length) const { return {data + begin, length, owner}; }
};

// Maps a regular file. A missing, unreadable or special file is a Diag without location that names
// the path. The file must not shrink while it is mapped.
Result<FileBytes> map_file(const std::string& path);

// Takes over a buffer.
FileBytes own_bytes(std::string bytes);

}  // namespace lathe
