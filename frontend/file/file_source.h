// A file by ranges: on a disk, in memory, or with a page that hands over pieces when asked.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "frontend/file/file_bytes.h"

namespace lathe {

struct FileSource {
  uint64_t size = 0;
  // Only when begin + length <= size. A Diag when the bytes are not here.
  std::function<Result<FileBytes>(uint64_t begin, uint64_t length)> read = {};
  // The range, which holds raw deflated data, as at most `max_bytes` inflated ones.
  std::function<Result<FileBytes>(uint64_t begin, uint64_t length, uint64_t max_bytes)> inflate =
      {};

  bool holds(uint64_t begin, uint64_t length) const {
    return begin <= size && length <= size - begin;
  }
};

// A regular file, open as long as the source or a copy of it lives. Nothing is mapped: a file that
// shrinks while it is read is a Diag, never a fault, and what was read stays as it was. A missing,
// unreadable or special file is a Diag without location that names the path.
Result<FileSource> open_file(const std::string& path);

// All of a file at once; kTooLarge when it has more than `max_bytes`.
Result<FileBytes> read_all(const FileSource& file, uint64_t max_bytes = UINT64_MAX);
Result<FileBytes> read_bytes(const std::string& path);

// All of it in memory; ranges are slices.
FileSource whole_file(FileBytes bytes);

}  // namespace lathe
