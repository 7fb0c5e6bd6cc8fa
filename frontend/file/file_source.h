// A file by ranges: mapped here, or with a page that hands over the pieces it is asked for.
#pragma once
#include <cstdint>
#include <functional>

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

// All of it in memory; ranges are slices.
FileSource whole_file(FileBytes bytes);

}  // namespace lathe
