// Files that are whole.
#include "frontend/file/file_source.h"

#include <utility>

#include "frontend/file/inflate.h"

namespace lathe {

FileSource whole_file(FileBytes bytes) {
  auto read = [bytes](uint64_t begin, uint64_t length) -> Result<FileBytes> {
    return bytes.slice(static_cast<size_t>(begin), static_cast<size_t>(length));
  };
  auto inflate = [bytes](uint64_t begin, uint64_t length, uint64_t max_bytes) -> Result<FileBytes> {
    FileBytes packed = bytes.slice(static_cast<size_t>(begin), static_cast<size_t>(length));
    LATHE_TRY(std::string inflated,
              inflate_bytes(packed.text(), DeflateFormat::raw, static_cast<size_t>(max_bytes)));
    return own_bytes(std::move(inflated));
  };
  return {bytes.size, std::move(read), std::move(inflate)};
}

}  // namespace lathe
