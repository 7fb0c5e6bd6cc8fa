// The directory of a zip file: where each entry lies, every offset and size checked. Of the file
// only the directory and the entries that are asked for are read; stored entries are used in place.
// Zip64 is read and written; encryption, several disks and methods other than stored and deflated
// are refused, and deflated entries of more than 16 GiB together.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/file/file_source.h"

namespace lathe {

struct ZipEntry {
  std::string name;
  bool is_deflated = false;
  uint64_t header = 0;       // where its header lies, before the data
  uint64_t packed_size = 0;  // bytes in the file
  uint64_t size = 0;         // bytes once inflated
  uint32_t crc = 0;
};

class ZipReader {
 public:
  // Diags have no location; the message names the entry or byte.
  static Result<ZipReader> open(FileSource file);
  static Result<ZipReader> open(FileBytes file) { return open(whole_file(std::move(file))); }

  const std::vector<ZipEntry>& entries() const { return entries_; }  // in directory order
  const ZipEntry* find(std::string_view name) const;                 // null when there is none

  // Where the entry's data begin in the file: its header says.
  Result<uint64_t> data_begin(const ZipEntry& entry) const;

  // The entry's bytes, at most `max_size`. `check_crc` goes over them all, which takes longer than
  // to read them; weights are not checked.
  Result<FileBytes> read(const ZipEntry& entry, uint64_t max_size, bool check_crc) const;
  // Some of a stored entry's bytes, unchecked. Only when begin + length <= entry.size.
  Result<FileBytes> read_range(const ZipEntry& entry, uint64_t begin, uint64_t length) const;

 private:
  FileSource file_;
  std::vector<ZipEntry> entries_;
  std::map<std::string, size_t, std::less<>> index_;
};

// Builds a zip in memory. Names must be unique.
class ZipWriter {
 public:
  // Entry data start at multiples of `alignment` bytes when they are stored.
  explicit ZipWriter(size_t alignment = 64) : alignment_(alignment) {}
  Status add(std::string_view name, std::string_view bytes, bool deflate);
  std::string finish() &&;

 private:
  struct Record {
    std::string name;
    uint32_t crc;
    uint64_t packed_size, size, header;
    bool is_deflated;
  };
  size_t alignment_;
  std::string out_;
  std::vector<Record> records_;
};

}  // namespace lathe
