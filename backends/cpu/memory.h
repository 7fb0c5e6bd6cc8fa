// Blocks of memory that kernels run on: 64-byte aligned, zeroed, large ones on huge pages.
#pragma once
#include <cstddef>
#include <utility>

#include "ir/support/result.h"

namespace lathe::cpu {

class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Block();
  // An error names `what` the memory was for.
  static Result<Block> allocate(size_t size, const char* what);

  std::byte* address() const { return bytes_; }
  size_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;  // from mmap
  size_t size_ = 0;
};

inline constexpr size_t kBufferAlign = 64;
inline size_t align_up(size_t size) {
  return (size + kBufferAlign - 1) / kBufferAlign * kBufferAlign;
}
inline bool is_aligned(const std::byte* p) {
  return reinterpret_cast<uintptr_t>(p) % kBufferAlign == 0;
}

}  // namespace lathe::cpu
