// Read-only mappings of files.
#include "frontend/file/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "frontend/file/path.h"
#include "ir/support/diag_codes.h"

namespace lathe {

Result<FileBytes> map_file(const std::string& path) {
  LATHE_DO(check_path(path));
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return Diag{code::kMissingFile, Loc::unknown(),
                fmt::format("cannot open '{}': {}", path, std::strerror(errno))};
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return Diag{code::kMissingFile, Loc::unknown(),
                fmt::format("'{}' is not a regular file", path)};
  }
  size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) {
    close(fd);
    return own_bytes({});
  }
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  close(fd);
  if (address == MAP_FAILED)
    return Diag{code::kMissingFile, Loc::unknown(),
                fmt::format("cannot map '{}': {}", path, std::strerror(error))};
  std::shared_ptr<const void> owner(address,
                                    [size](const void* p) { munmap(const_cast<void*>(p), size); });
  return FileBytes{static_cast<const std::byte*>(address), size, std::move(owner)};
}

FileBytes own_bytes(std::string bytes) {
  auto buffer = std::make_shared<const std::string>(std::move(bytes));
  return {reinterpret_cast<const std::byte*>(buffer->data()), buffer->size(), buffer};
}

}  // namespace lathe
