// Zip directories, after PKWARE's APPNOTE 6.3.
#include "frontend/pt2/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "frontend/pt2/inflate.h"
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

Diag bad(std::string message) { return {code::kBadArchive, Loc::unknown(), std::move(message)}; }

// Little-endian fields at checked offsets.
class Bytes {
 public:
  Bytes(const std::byte* data, size_t size) : data_(data), size_(size) {}
  size_t size() const { return size_; }
  bool holds(uint64_t begin, uint64_t length) const {
    return begin <= size_ && length <= size_ - begin;
  }
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

Result<Directory> find_directory(const Bytes& file) {
  constexpr size_t kLongestComment = 65535;
  if (file.size() < kEndSize) return bad("too short for a zip file");
  size_t lowest = file.size() - std::min(file.size(), kEndSize + kLongestComment);
  size_t end = file.size() - kEndSize;
  while (file.u32(end) != kEndSignature || file.u16(end + 20) != file.size() - end - kEndSize) {
    if (end == lowest) return bad("no zip directory at the end; the file may be cut short");
    --end;
  }
  Directory directory{file.u32(end + 16), file.u32(end + 12), file.u16(end + 10)};
  if (file.u16(end + 4) != file.u16(end + 6)) return bad("zip files of several disks are not read");
  if (end >= kLocator64Size && file.u32(end - kLocator64Size) == kLocator64Signature) {
    uint64_t at = file.u64(end - kLocator64Size + 8);
    if (!file.holds(at, kEnd64Size) || file.u32(at) != kEnd64Signature)
      return bad("the zip64 directory record is not where its locator says");
    directory = {file.u64(at + 48), file.u64(at + 40), file.u64(at + 32)};
  }
  if (!file.holds(directory.begin, directory.size))
    return bad(fmt::format("the zip directory ({} bytes at {}) lies outside the file of {} bytes",
                           directory.size, directory.begin, file.size()));
  if (directory.count > directory.size / kCentralSize)
    return bad(fmt::format("the zip directory of {} bytes cannot hold {} entries", directory.size,
                           directory.count));
  return directory;
}

// Replaces fields that read 0xffffffff by those of the zip64 extra field, in their fixed order.
Status read_zip64(const Bytes& file, size_t at, size_t length, ZipEntry& entry, uint64_t& header) {
  bool any = entry.size == kIn64 || entry.packed_size == kIn64 || header == kIn64;
  for (size_t end = at + length; any && at + 4 <= end;) {
    uint16_t id = file.u16(at), size = file.u16(at + 2);
    at += 4;
    if (size > end - at) break;
    if (id == kExtraZip64) {
      size_t field_end = at + size;
      uint64_t values[3] = {entry.size, entry.packed_size, header};
      for (uint64_t& value : values) {
        if (value != kIn64) continue;
        if (field_end - at < 8)
          return bad(fmt::format("entry '{}': short zip64 field", entry.name));
        value = file.u64(at);
        at += 8;
      }
      entry.size = values[0];
      entry.packed_size = values[1];
      header = values[2];
      return Ok{};
    }
    at += size;
  }
  return Ok{};
}

// Reads the directory record at `at`, which moves to the next one.
Result<ZipEntry> read_entry(const Bytes& file, uint64_t& at, uint64_t directory_end) {
  if (directory_end - at < kCentralSize || file.u32(at) != kCentralSignature)
    return bad(fmt::format("broken zip directory record at byte {}", at));
  size_t name_size = file.u16(at + 28), extra_size = file.u16(at + 30);
  size_t record_size = kCentralSize + name_size + extra_size + file.u16(at + 32);
  if (directory_end - at < record_size)
    return bad(fmt::format("the zip directory record at byte {} is cut short", at));
  ZipEntry entry;
  entry.name = file.text(at + kCentralSize, name_size);
  entry.crc = file.u32(at + 16);
  entry.packed_size = file.u32(at + 20);
  entry.size = file.u32(at + 24);
  uint64_t header = file.u32(at + 42);
  LATHE_DO(read_zip64(file, at + kCentralSize + name_size, extra_size, entry, header));
  uint16_t method = file.u16(at + 10);
  if (file.u16(at + 8) & 1) return bad(fmt::format("entry '{}' is encrypted", entry.name));
  if (method != kMethodStored && method != kMethodDeflated)
    return bad(fmt::format("entry '{}' uses zip method {}; stored (0) and deflated (8) are read",
                           entry.name, method));
  entry.is_deflated = method == kMethodDeflated;
  if (!entry.is_deflated && entry.packed_size != entry.size)
    return bad(fmt::format("stored entry '{}' has two sizes, {} and {}", entry.name,
                           entry.packed_size, entry.size));
  // The local header repeats name and extra field, possibly with other lengths.
  if (!file.holds(header, kLocalSize) || file.u32(header) != kLocalSignature)
    return bad(fmt::format("entry '{}' has no header at byte {}", entry.name, header));
  uint64_t data = header + kLocalSize + file.u16(header + 26) + file.u16(header + 28);
  if (!file.holds(data, entry.packed_size))
    return bad(fmt::format("entry '{}' ({} bytes at {}) lies outside the file of {} bytes",
                           entry.name, entry.packed_size, data, file.size()));
  entry.begin = data;
  at += record_size;
  return entry;
}

// Little-endian; bytes beyond the eighth are zero.
void put(std::string& out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) {
    out.push_back(i < 8 ? static_cast<char>(value >> (8 * i)) : '\0');
  }
}

}  // namespace

Result<ZipReader> ZipReader::open(FileBytes file) {
  Bytes bytes(file.data, file.size);
  LATHE_TRY(Directory directory, find_directory(bytes));
  ZipReader reader;
  reader.file_ = std::move(file);
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.count; ++i) {
    LATHE_TRY(ZipEntry entry, read_entry(bytes, at, directory.begin + directory.size));
    if (!reader.index_.emplace(entry.name, reader.entries_.size()).second)
      return bad(fmt::format("two entries are named '{}'", entry.name));
    reader.entries_.push_back(std::move(entry));
  }
  return reader;
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
  FileBytes bytes =
      file_.slice(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.packed_size));
  if (entry.is_deflated) {
    auto inflated =
        inflate_bytes(bytes.text(), DeflateFormat::raw, static_cast<size_t>(entry.size));
    if (!inflated.ok() || inflated->size() != entry.size)
      return bad(fmt::format("entry '{}': {}", entry.name,
                             inflated.ok() ? "inflates to fewer bytes than the directory says"
                                           : inflated.error().message));
    bytes = own_bytes(*std::move(inflated));
  }
  if (check_crc && crc32_of(bytes.text()) != entry.crc)
    return bad(fmt::format("entry '{}' does not match its checksum", entry.name));
  return bytes;
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
