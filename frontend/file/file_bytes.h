// Bytes that somebody owns: of a file that was read, or of memory.
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
  std::shared_ptr<const void> owner;  // the buffer; may outlive this struct

  std::string_view text() const { return {reinterpret_cast<const char*>(data), size}; }
  // Only when begin + length <= size.
  FileBytes slice(size_t begin, size_t length) const { return {data + begin, length, owner}; }
};

// Takes over a buffer.
FileBytes own_bytes(std::string bytes);

// New memory, aligned so that kernels can read it in place; kTooLarge names `what` it was for.
Result<std::shared_ptr<std::byte>> new_bytes(size_t size, std::string_view what);

}  // namespace lathe
