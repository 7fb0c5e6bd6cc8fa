// Zip directories, after PKWARE's APPNOTE 6.3.
#include "frontend/file/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "frontend/file/inflate.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56;
constexpr size_t kLocator64Size = 20;
constexpr uint16_t kMethodStored = 0, kMethodDeflated = 8;
constexpr uint16_t kExtraZip64 = 1;
constexpr uint16_t kExtraPadding = 0xd935;  // as zipalign writes it
constexpr uint32_t kIn64 = 0xffffffff;      // the value stands in the zip64 field
constexpr uint64_t kMostDeflated = 1032;    // bytes that one deflated byte can stand for (zlib)
constexpr uint64_t kMaxInflated = uint64_t{16} << 30;  // of all entries of an archive together

Diag bad(std::string message) { return {code::kBadArchive, Loc::unknown(), std::move(message)}; }

// Little-endian fields at checked offsets.
class Bytes {
 public:
  Bytes(const std::byte* data, size_t size) : data_(data), size_(size) {}
  size_t size() const { return size_; }
  // Only when holds(at, width).
  uint64_t read(size_t at, size_t width) const {
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(data_[at + i]);
    return value;
  }
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(read(at, 2)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(read(at, 4)); }
  uint64_t u64(size_t at) const { return read(at, 8); }
  std::string text(size_t at, size_t length) const {
    return {reinterpret_cast<const char*>(data_ + at), length};
  }

 private:
  const std::byte* data_;
  size_t size_;
};

struct Directory {
  uint64_t begin = 0, size = 0, count = 0;
};

Result<Directory> find_directory(const FileSource& file) {
  constexpr uint64_t kLongestComment = 65535;
  if (file.size < kEndSize) return bad("too short for a zip file");
  uint64_t tail_size = std::min(file.size, kLocator64Size + kEndSize + kLongestComment);
  uint64_t tail_begin = file.size - tail_size;
  LATHE_TRY(FileBytes tail_bytes, file.read(tail_begin, tail_size));
  Bytes tail(tail_bytes.data, tail_bytes.size);
  size_t end = tail.size() - kEndSize;
  while (tail.u32(end) != kEndSignature || tail.u16(end + 20) != tail.size() - end - kEndSize) {
    if (end == 0) return bad("no zip directory at the end; the file may be cut short");
    --end;
  }
  Directory directory{tail.u32(end + 16), tail.u32(end + 12), tail.u16(end + 10)};
  if (tail.u16(end + 4) != tail.u16(end + 6)) return bad("zip files of several disks are not read");
  if (end >= kLocator64Size && tail.u32(end - kLocator64Size) == kLocator64Signature) {
    uint64_t at = tail.u64(end - kLocator64Size + 8);
    Diag missing = bad("the zip64 directory record is not where its locator says");
    if (!file.holds(at, kEnd64Size)) return missing;
    LATHE_TRY(FileBytes record_bytes, file.read(at, kEnd64Size));
    Bytes record(record_bytes.data, record_bytes.size);
    if (record.u32(0) != kEnd64Signature) return missing;
    directory = {record.u64(48), record.u64(40), record.u64(32)};
  }
  if (!file.holds(directory.begin, directory.size))
    return bad(fmt::format("the zip directory ({} bytes at {}) lies outside the file of {} bytes",
                           directory.size, directory.begin, file.size));
  if (directory.count > directory.size / kCentralSize)
    return bad(fmt::format("the zip directory of {} bytes cannot hold {} entries", directory.size,
                           directory.count));
  return directory;
}

// Replaces fields that read 0xffffffff by those of the zip64 extra field, in their fixed order.
Status read_zip64(const Bytes& directory, size_t at, size_t length, ZipEntry& entry) {
  bool any = entry.size == kIn64 || entry.packed_size == kIn64 || entry.header == kIn64;
  for (size_t end = at + length; any && at + 4 <= end;) {
    uint16_t id = directory.u16(at), size = directory.u16(at + 2);
    at += 4;
    if (size > end - at) break;
    if (id == kExtraZip64) {
      size_t field_end = at + size;
      uint64_t values[3] = {entry.size, entry.packed_size, entry.header};
      for (uint64_t& value : values) {
        if (value != kIn64) continue;
        if (field_end - at < 8)
          return bad(fmt::format("entry '{}': short zip64 field", entry.name));
        value = directory.u64(at);
        at += 8;
      }
      entry.size = values[0];
      entry.packed_size = values[1];
      entry.header = values[2];
      return Ok{};
    }
    at += size;
  }
  return Ok{};
}

// Reads the record at `at` of the directory, which moves to the next one. `begin` is where the
// directory lies in the file.
Result<ZipEntry> read_entry(const FileSource& file, const Bytes& directory, uint64_t begin,
                            size_t& at) {
  if (directory.size() - at < kCentralSize || directory.u32(at) != kCentralSignature)
    return bad(fmt::format("broken zip directory record at byte {}", begin + at));
  size_t name_size = directory.u16(at + 28), extra_size = directory.u16(at + 30);
  size_t record_size = kCentralSize + name_size + extra_size + directory.u16(at + 32);
  if (directory.size() - at < record_size)
    return bad(fmt::format("the zip directory record at byte {} is cut short", begin + at));
  ZipEntry entry;
  entry.name = directory.text(at + kCentralSize, name_size);
  entry.crc = directory.u32(at + 16);
  entry.packed_size = directory.u32(at + 20);
  entry.size = directory.u32(at + 24);
  entry.header = directory.u32(at + 42);
  LATHE_DO(read_zip64(directory, at + kCentralSize + name_size, extra_size, entry));
  uint16_t method = directory.u16(at + 10);
  if (directory.u16(at + 8) & 1) return bad(fmt::format("entry '{}' is encrypted", entry.name));
  if (method != kMethodStored && method != kMethodDeflated)
    return bad(fmt::format("entry '{}' uses zip method {}; stored (0) and deflated (8) are read",
                           entry.name, method));
  entry.is_deflated = method == kMethodDeflated;
  if (!entry.is_deflated && entry.packed_size != entry.size)
    return bad(fmt::format("stored entry '{}' has two sizes, {} and {}", entry.name,
                           entry.packed_size, entry.size));
  if (entry.is_deflated && entry.size / kMostDeflated > entry.packed_size)
    return bad(fmt::format("entry '{}': {} bytes cannot inflate to {}", entry.name,
                           entry.packed_size, entry.size));
  if (!file.holds(entry.header, kLocalSize))
    return bad(fmt::format("entry '{}' has no header at byte {}", entry.name, entry.header));
  at += record_size;
  return entry;
}

// Each byte of the file belongs to one entry at most: a small file would be inflated many times
// otherwise. What a header adds to its fixed part is left out here.
Status check_apart(const std::vector<ZipEntry>& entries, uint64_t directory_begin) {
  std::vector<const ZipEntry*> sorted;
  for (const ZipEntry& entry : entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header < b->header; });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const ZipEntry& entry = *sorted[i];
    const bool is_last = i + 1 == sorted.size();
    const uint64_t end = is_last ? directory_begin : sorted[i + 1]->header;
    const uint64_t room = end < entry.header ? 0 : end - entry.header;
    if (room < kLocalSize || room - kLocalSize < entry.packed_size)
      return bad(fmt::format(
          "entry '{}' ({} bytes at {}) overlaps {}", entry.name, entry.packed_size, entry.header,
          is_last ? "the directory" : fmt::format("entry '{}'", sorted[i + 1]->name)));
  }
  return Ok{};
}

// What inflates can all be asked for, and is then held at once.
Status check_inflated(const std::vector<ZipEntry>& entries) {
  uint64_t sum = 0;
  for (const ZipEntry& entry : entries) {
    if (!entry.is_deflated) continue;
    if (entry.size > kMaxInflated - sum)
      return Diag{code::kTooLarge, Loc::unknown(),
                  fmt::format("the deflated entries up to '{}' hold more than {} bytes", entry.name,
                              kMaxInflated)};
    sum += entry.size;
  }
  return Ok{};
}

// Little-endian; bytes beyond the eighth are zero.
void put(std::string& out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) {
    out.push_back(i < 8 ? static_cast<char>(value >> (8 * i)) : '\0');
  }
}

}  // namespace

Result<ZipReader> ZipReader::open(FileSource file) {
  LATHE_TRY(Directory directory, find_directory(file));
  LATHE_TRY(FileBytes bytes, file.read(directory.begin, directory.size));
  Bytes records(bytes.data, bytes.size);
  ZipReader reader;
  reader.file_ = std::move(file);
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    LATHE_TRY(ZipEntry entry, read_entry(reader.file_, records, directory.begin, at));
    if (!reader.index_.emplace(entry.name, reader.entries_.size()).second)
      return bad(fmt::format("two entries are named '{}'", entry.name));
    reader.entries_.push_back(std::move(entry));
  }
  LATHE_DO(check_apart(reader.entries_, directory.begin));
  LATHE_DO(check_inflated(reader.entries_));
  return reader;
}

Result<uint64_t> ZipReader::data_begin(const ZipEntry& entry) const {
  LATHE_TRY(FileBytes bytes, file_.read(entry.header, kLocalSize));
  Bytes header(bytes.data, bytes.size);
  if (header.u32(0) != kLocalSignature)
    return bad(fmt::format("entry '{}' has no header at byte {}", entry.name, entry.header));
  // It repeats name and extra field, possibly with other lengths.
  uint64_t data = entry.header + kLocalSize + header.u16(26) + header.u16(28);
  if (!file_.holds(data, entry.packed_size))
    return bad(fmt::format("entry '{}' ({} bytes at {}) lies outside the file of {} bytes",
                           entry.name, entry.packed_size, data, file_.size));
  return data;
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

Result<FileBytes> ZipReader::read(const ZipEntry& entry, uint64_t max_size, bool check_crc) const {
  if (entry.size > max_size)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("entry '{}' holds {} bytes, at most {} are read", entry.name,
                            entry.size, max_size)};
  LATHE_TRY(uint64_t begin, data_begin(entry));
  auto bytes = entry.is_deflated ? file_.inflate(begin, entry.packed_size, entry.size)
                                 : file_.read(begin, entry.packed_size);
  if (!bytes.ok() && bytes.error().code == code::kUnavailable) return std::move(bytes).error();
  if (!bytes.ok()) {
    Diag diag = bad(fmt::format("entry '{}': {}", entry.name, bytes.error().message));
    if (!entry.is_deflated) diag.code = bytes.error().code;
    return diag;
  }
  if (bytes->size != entry.size)
    return bad(
        fmt::format("entry '{}': inflates to fewer bytes than the directory says", entry.name));
  if (check_crc && crc32_of(bytes->text()) != entry.crc)
    return bad(fmt::format("entry '{}' does not match its checksum", entry.name));
  return *std::move(bytes);
}

Result<FileBytes> ZipReader::read_range(const ZipEntry& entry, uint64_t begin,
                                        uint64_t length) const {
  LATHE_CHECK(!entry.is_deflated && begin <= entry.size && length <= entry.size - begin,
              "a range outside its entry");
  LATHE_TRY(uint64_t data, data_begin(entry));
  return file_.read(data + begin, length);
}

Status ZipWriter::add(std::string_view name, std::string_view bytes, bool deflate) {
  Record record{std::string(name), crc32_of(bytes), bytes.size(),
                bytes.size(),      out_.size(),     deflate};
  std::string packed;
  if (deflate) {
    LATHE_TRY(packed, deflate_bytes(bytes));
    record.packed_size = packed.size();
  }
  // Sizes stand in a zip64 field always, so that one layout serves all; padding aligns the data.
  size_t fixed = out_.size() + kLocalSize + name.size() + 20;
  size_t padding = 0;
  if (!deflate && alignment_ > 1) {
    fixed += 4;
    padding = (alignment_ - fixed % alignment_) % alignment_;
  }
  put(out_, kLocalSignature, 4);
  put(out_, 45, 2);  // version needed: zip64
  put(out_, 0x800, 2);
  put(out_, deflate ? kMethodDeflated : kMethodStored, 2);
  put(out_, 0x00210000, 4);  // 1 January 1980: equal contents give equal files
  put(out_, record.crc, 4);
  put(out_, kIn64, 4);
  put(out_, kIn64, 4);
  put(out_, name.size(), 2);
  bool pads = !deflate && alignment_ > 1;
  put(out_, 20 + (pads ? 4 + padding : 0), 2);
  out_ += name;
  put(out_, kExtraZip64, 2);
  put(out_, 16, 2);
  put(out_, record.size, 8);
  put(out_, record.packed_size, 8);
  if (pads) {
    put(out_, kExtraPadding, 2);
    put(out_, padding, 2);
    out_.append(padding, '\0');
  }
  out_ += deflate ? std::string_view(packed) : bytes;
  records_.push_back(std::move(record));
  return Ok{};
}

std::string ZipWriter::finish() && {
  uint64_t directory = out_.size();
  for (const Record& record : records_) {
    put(out_, kCentralSignature, 4);
    put(out_, 45, 2);
    put(out_, 45, 2);
    put(out_, 0x800, 2);
    put(out_, record.is_deflated ? kMethodDeflated : kMethodStored, 2);
    put(out_, 0x00210000, 4);
    put(out_, record.crc, 4);
    put(out_, kIn64, 4);
    put(out_, kIn64, 4);
    put(out_, record.name.size(), 2);
    put(out_, 28, 2);
    put(out_, 0, 10);  // no comment, disk 0, attributes
    put(out_, kIn64, 4);
    out_ += record.name;
    put(out_, kExtraZip64, 2);
    put(out_, 24, 2);
    put(out_, record.size, 8);
    put(out_, record.packed_size, 8);
    put(out_, record.header, 8);
  }
  uint64_t end = out_.size();
  put(out_, kEnd64Signature, 4);
  put(out_, kEnd64Size - 12, 8);
  put(out_, 45, 2);
  put(out_, 45, 2);
  put(out_, 0, 8);
  put(out_, records_.size(), 8);
  put(out_, records_.size(), 8);
  put(out_, end - directory, 8);
  put(out_, directory, 8);
  put(out_, kLocator64Signature, 4);
  put(out_, 0, 4);
  put(out_, end, 8);
  put(out_, 1, 4);
  put(out_, kEndSignature, 4);
  put(out_, 0, 4);
  put(out_, 0xffff, 2);
  put(out_, 0xffff, 2);
  put(out_, kIn64, 4);
  put(out_, kIn64, 4);
  put(out_, 0, 2);
  return std::move(out_);
}

}  // namespace lathe
