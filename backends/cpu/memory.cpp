// Blocks come from mmap: the kernel zeroes them, and only pages that are used cost memory.
#include "backends/cpu/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ir/support/diag_codes.h"

namespace lathe::cpu {
namespace {

constexpr size_t kHugePage = 2 << 20;

}  // namespace

Block::~Block() {
  if (bytes_) munmap(bytes_, size_);
}

Result<Block> Block::allocate(size_t size, const char* what) {
  Block block;
  if (size == 0) return block;
  bool is_large = size >= 2 * kHugePage;
  size_t granule = is_large ? kHugePage : 4096;
  Diag too_large{.code = code::kTooLarge,
                 .loc = Loc::unknown(),
                 .message = fmt::format("cannot allocate {} bytes for {}", size, what)};
  // The kernel grants more than there is, and ends the process when it is used.
  const auto memory =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (size > memory) return too_large;
  size = (size + granule - 1) / granule * granule;
  // Huge pages need an address that is a multiple of their size: map more and give back the ends.
  size_t slack = is_large ? kHugePage : 0;
  void* mapped =
      mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return too_large;
  auto* start = static_cast<std::byte*>(mapped);
  if (is_large) {
    size_t head = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
    if (head > 0) munmap(start, head);
    if (slack > head) munmap(start + head + size, slack - head);
    start += head;
    madvise(start, size, MADV_HUGEPAGE);
  }
  block.bytes_ = start;
  block.size_ = size;
  return block;
}

}  // namespace lathe::cpu
