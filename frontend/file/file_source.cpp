// Files on a disk and in memory.
//
// What a disk holds is read and not mapped: the process would die by SIGBUS when another one
// truncates the file, and compute with other weights when it is written to.
#include "frontend/file/file_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "frontend/file/inflate.h"
#include "frontend/file/path.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

class OpenFile {
 public:
  explicit OpenFile(std::string path) : path_(std::move(path)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;

  // Its size.
  Result<uint64_t> open() {
    // A pipe without a writer does not block, and is refused below.
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) return fail(fmt::format("cannot open '{}': {}", path_, std::strerror(errno)));
    struct stat info = {};
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode))
      return fail(fmt::format("'{}' is not a regular file", path_));
    written_ = info.st_mtim;
    return static_cast<uint64_t>(info.st_size);
  }

  Result<FileBytes> read(uint64_t begin, uint64_t length) const {
    LATHE_TRY(std::shared_ptr<std::byte> bytes, new_bytes(length, fmt::format("'{}'", path_)));
    for (uint64_t done = 0; done < length;) {
      const ssize_t count =
          pread(fd_, bytes.get() + done, length - done, static_cast<off_t>(begin + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return fail(fmt::format("cannot read '{}': {}", path_, std::strerror(errno)));
      if (count == 0)
        return Diag{code::kBadArchive, Loc::unknown(),
                    fmt::format("'{}' ends at byte {}, expected {} bytes from {}: it became "
                                "shorter while it was read",
                                path_, begin + done, length, begin)};
      done += static_cast<uint64_t>(count);
    }
    LATHE_DO(check_unchanged());
    const std::byte* data = bytes.get();
    return FileBytes{data, static_cast<size_t>(length), std::move(bytes)};
  }

 private:
  // What is read now belongs to what was read before.
  Status check_unchanged() const {
    struct stat info = {};
    if (fstat(fd_, &info) == 0 && info.st_mtim.tv_sec == written_.tv_sec &&
        info.st_mtim.tv_nsec == written_.tv_nsec)
      return Ok{};
    return Diag{code::kBadArchive, Loc::unknown(),
                fmt::format("'{}' was written to since it was opened", path_)};
  }

  static Diag fail(std::string message) {
    return {code::kMissingFile, Loc::unknown(), std::move(message)};
  }
  std::string path_;
  int fd_ = -1;
  struct timespec written_ = {};
};

Result<FileBytes> inflate_raw(const FileBytes& packed, uint64_t max_bytes) {
  LATHE_TRY(std::string inflated,
            inflate_bytes(packed.text(), DeflateFormat::raw, static_cast<size_t>(max_bytes)));
  return own_bytes(std::move(inflated));
}

}  // namespace

Result<FileSource> open_file(const std::string& path) {
  LATHE_DO(check_path(path));
  auto file = std::make_shared<OpenFile>(path);
  LATHE_TRY(const uint64_t size, file->open());
  auto read = [file](uint64_t begin, uint64_t length) { return file->read(begin, length); };
  auto inflate = [file](uint64_t begin, uint64_t length, uint64_t max_bytes) -> Result<FileBytes> {
    LATHE_TRY(FileBytes packed, file->read(begin, length));
    return inflate_raw(packed, max_bytes);
  };
  return FileSource{size, std::move(read), std::move(inflate)};
}

Result<FileBytes> read_all(const FileSource& file, uint64_t max_bytes) {
  if (file.size > max_bytes)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("the file has {} bytes, at most {} are read", file.size, max_bytes)};
  return file.read(0, file.size);
}

Result<FileBytes> read_bytes(const std::string& path) {
  LATHE_TRY(FileSource file, open_file(path));
  return read_all(file);
}

FileSource whole_file(FileBytes bytes) {
  auto read = [bytes](uint64_t begin, uint64_t length) -> Result<FileBytes> {
    return bytes.slice(static_cast<size_t>(begin), static_cast<size_t>(length));
  };
  auto inflate = [bytes](uint64_t begin, uint64_t length, uint64_t max_bytes) -> Result<FileBytes> {
    return inflate_raw(bytes.slice(static_cast<size_t>(begin), static_cast<size_t>(length)),
                       max_bytes);
  };
  return {bytes.size, std::move(read), std::move(inflate)};
}

}  // namespace lathe
