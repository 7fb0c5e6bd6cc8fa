// Reads the words, then writes what they say after PKWARE's APPNOTE 6.3.
#include "tests/fuzz/zip_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "frontend/file/inflate.h"

namespace lathe::fuzz {
namespace {

constexpr size_t kMaxBytes = 8 << 20;  // of all entries
constexpr uint64_t kIn64 = 0xffffffff;
constexpr std::string_view kLies[] = {"size",  "packed", "crc",   "header", "method",
                                      "flags", "disk",   "count", "begin",  "locator"};

using Words = std::map<std::string, uint64_t, std::less<>>;

uint64_t value(const Words& words, std::string_view key, uint64_t otherwise) {
  const auto found = words.find(key);
  return found == words.end() ? otherwise : found->second;
}
bool has(const Words& words, std::string_view key) { return words.find(key) != words.end(); }

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

Words read_words(std::string_view line) {
  Words words;
  while (true) {
    const std::string_view word = take_word(line);
    if (word.empty()) return words;
    const size_t equals = std::min(word.find('='), word.size());
    uint64_t number = 0;
    std::from_chars(word.data() + std::min(equals + 1, word.size()), word.data() + word.size(),
                    number);
    words[std::string(word.substr(0, equals))] = number;
  }
}

void put(std::string& out, uint64_t number, int width) {
  for (int i = 0; i < width; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

// What a directory says of an entry.
struct Record {
  std::string name;
  Words words;
  uint64_t header = 0, packed = 0, size = 0, crc = 0;
  bool is_deflated = false;
};

class Writer {
 public:
  void add(std::string name, std::string bytes, Words words) {
    Record record{std::move(name), std::move(words), zip_.file.size(), 0, 0, 0, false};
    zip_.is_honest = zip_.is_honest && names_.insert(record.name).second &&
                     record.name.size() <= UINT16_MAX && !has(record.words, "as");
    const uint64_t times = std::min<uint64_t>(value(record.words, "times", 1),
                                              bytes_left_ / std::max<size_t>(bytes.size(), 1));
    bytes_left_ -= times * bytes.size();
    std::string repeated;
    for (uint64_t i = 0; i < times; ++i) repeated += bytes;
    record.size = repeated.size();
    record.crc = crc32_of(repeated);
    std::string packed = repeated;
    record.is_deflated = has(record.words, "deflate");
    if (record.is_deflated)
      if (auto deflated = deflate_bytes(repeated); deflated.ok()) packed = *deflated;
    record.packed = packed.size();
    if (const uint64_t other = value(record.words, "as", UINT64_MAX); other < records_.size()) {
      record.header = records_[other].header;
      record.packed = records_[other].packed;
      record.size = records_[other].size;
      record.crc = records_[other].crc;
      record.is_deflated = records_[other].is_deflated;
    } else {
      put_header(record);
      zip_.file += packed;
    }
    zip_.entries.push_back({record.name, std::move(repeated)});
    records_.push_back(std::move(record));
  }

  ZipText finish(const Words& words) && {
    const uint64_t begin = zip_.file.size();
    for (const Record& record : records_) put_record(record);
    const uint64_t size = value(words, "size", zip_.file.size() - begin);
    const uint64_t count = value(words, "count", records_.size());
    const uint64_t first = value(words, "begin", begin);
    if (has(words, "zip64")) put_end64(count, size, first, words);
    std::string& out = zip_.file;
    const bool is_wide = has(words, "zip64");
    put(out, 0x06054b50, 4);
    put(out, value(words, "disk", 0), 2);
    put(out, 0, 2);
    put(out, is_wide ? UINT16_MAX : count, 2);
    put(out, is_wide ? UINT16_MAX : count, 2);
    put(out, is_wide ? kIn64 : size, 4);
    put(out, is_wide ? kIn64 : first, 4);
    put(out, 0, 2);
    for (const std::string_view lie : kLies) zip_.is_honest = zip_.is_honest && !has(words, lie);
    zip_.is_honest = zip_.is_honest && records_.size() < UINT16_MAX;
    return std::move(zip_);
  }

 private:
  void put_header(const Record& record) {
    std::string& out = zip_.file;
    put(out, 0x04034b50, 4);
    put(out, 20, 2);
    put(out, 0, 2);
    put(out, record.is_deflated ? 8 : 0, 2);
    put(out, 0, 4);
    put(out, record.crc, 4);
    put(out, record.packed, 4);
    put(out, record.size, 4);
    put(out, record.name.size(), 2);
    put(out, 0, 2);
    out += record.name;
  }

  void put_record(const Record& record) {
    const Words& words = record.words;
    for (const std::string_view lie : kLies) zip_.is_honest = zip_.is_honest && !has(words, lie);
    const uint64_t size = value(words, "size", record.size);
    const uint64_t packed = value(words, "packed", record.packed);
    const uint64_t header = value(words, "header", record.header);
    const bool is_wide = has(words, "zip64");
    std::string& out = zip_.file;
    put(out, 0x02014b50, 4);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, value(words, "flags", 0), 2);
    put(out, value(words, "method", record.is_deflated ? 8 : 0), 2);
    put(out, 0, 4);
    put(out, value(words, "crc", record.crc), 4);
    put(out, is_wide ? kIn64 : packed, 4);
    put(out, is_wide ? kIn64 : size, 4);
    put(out, record.name.size(), 2);
    put(out, is_wide ? 28 : 0, 2);
    put(out, 0, 2);
    put(out, value(words, "disk", 0), 2);
    put(out, 0, 6);
    put(out, is_wide ? kIn64 : header, 4);
    out += record.name;
    if (!is_wide) return;
    put(out, 1, 2);
    put(out, 24, 2);
    put(out, size, 8);
    put(out, packed, 8);
    put(out, header, 8);
  }

  void put_end64(uint64_t count, uint64_t size, uint64_t first, const Words& words) {
    std::string& out = zip_.file;
    const uint64_t at = out.size();
    put(out, 0x06064b50, 4);
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8);
    put(out, count, 8);
    put(out, count, 8);
    put(out, size, 8);
    put(out, first, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, value(words, "locator", at), 8);
    put(out, 1, 4);
  }

  ZipText zip_;
  size_t bytes_left_ = kMaxBytes;
  std::vector<Record> records_;
  std::set<std::string> names_;
};

}  // namespace

ZipText zip_of(std::string_view text) {
  Writer writer;
  Words end;
  std::optional<std::pair<std::string, Words>> open;
  std::string bytes;
  const auto close = [&] {
    if (!open) return;
    if (!bytes.empty()) bytes.pop_back();  // the line's own end
    writer.add(std::move(open->first), std::move(bytes), std::move(open->second));
    open.reset();
    bytes.clear();
  };
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.substr(0, 3) == "@@ ") {
      close();
      end = read_words(line.substr(3));
    } else if (line.substr(0, 2) == "@ ") {
      close();
      line.remove_prefix(2);
      std::string name(take_word(line));
      open.emplace(std::move(name), read_words(line));
    } else if (open) {
      bytes.append(line).push_back('\n');
    }
  }
  close();
  return std::move(writer).finish(end);
}

}  // namespace lathe::fuzz
