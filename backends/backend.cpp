// What targets share that have the host's memory.
#include "backends/backend.h"

#include <fmt/format.h>

#include <cstdlib>

#include "ir/support/diag_codes.h"

namespace lathe {

Result<std::shared_ptr<std::byte>> Executable::allocate(size_t num_bytes, const std::string& what) {
  constexpr auto kAlignment = static_cast<size_t>(kBufferAlignment);
  const auto too_large = [&] {
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("no memory for the {} bytes of '{}'", num_bytes, what)};
  };
  if (num_bytes > SIZE_MAX - kAlignment) return too_large();
  const size_t rounded = (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (bytes == nullptr) return too_large();
  return std::shared_ptr<std::byte>(bytes, std::free);
}

}  // namespace lathe
