// Atomic replacement of files.
#include "frontend/file/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "frontend/file/path.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

Diag cannot(std::string_view what, const std::string& path, int error) {
  return {code::kMissingFile, Loc::unknown(),
          fmt::format("cannot {} '{}': {}", what, path, std::strerror(error))};
}

// 0, or errno.
int write_all(int fd, std::string_view bytes) {
  constexpr size_t kPiece = size_t{1} << 30;
  while (!bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), std::min(bytes.size(), kPiece));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  // What is no file on a disk has nothing to flush.
  return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

// A device, a pipe or a link, such as /dev/null and /dev/stdout: no file that another one may
// replace.
bool is_written_through(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

Status write_through(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0) return cannot("write", path, errno);
  int error = write_all(fd, bytes);
  if (close(fd) != 0 && error == 0) error = errno;
  return error == 0 ? Status(Ok{}) : cannot("write", path, error);
}

}  // namespace

Status write_file(const std::string& path, std::string_view bytes) {
  LATHE_DO(check_path(path));
  if (is_written_through(path)) return write_through(path, bytes);
  std::string temporary;
  int fd = -1;
  // The name is free unless an earlier process with this id died while writing.
  for (int attempt = 0; fd < 0 && attempt < 100; ++attempt) {
    temporary = fmt::format("{}.{}.{}.tmp", path, getpid(), attempt);
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) return cannot("write", path, errno);
  }
  if (fd < 0) return cannot("write", path, EEXIST);
  int error = write_all(fd, bytes);
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Ok{};
  unlink(temporary.c_str());
  return cannot("write", path, error);
}

}  // namespace lathe
