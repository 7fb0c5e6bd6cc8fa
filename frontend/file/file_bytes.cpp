// Buffers.
#include "frontend/file/file_bytes.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "ir/support/diag_codes.h"

namespace lathe {

FileBytes own_bytes(std::string bytes) {
  auto buffer = std::make_shared<const std::string>(std::move(bytes));
  return {reinterpret_cast<const std::byte*>(buffer->data()), buffer->size(), buffer};
}

Result<std::shared_ptr<std::byte>> new_bytes(size_t size, std::string_view what) {
  constexpr std::align_val_t kAlignment{64};
  void* bytes = ::operator new(size, kAlignment, std::nothrow);
  if (bytes == nullptr)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("cannot allocate {} bytes for {}", size, what)};
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(bytes), [](std::byte* p) {
    ::operator delete(p, std::align_val_t{kAlignment});
  });
}

}  // namespace lathe
