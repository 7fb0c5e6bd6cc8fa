// The zip reader and writer, and bounded inflation.
#include "frontend/file/zip.h"

#include <gtest/gtest.h>

#include "frontend/file/inflate.h"

namespace lathe {
namespace {

std::string sample() {
  ZipWriter zip;
  EXPECT_TRUE(zip.add("a/stored", "hello", false).ok());
  EXPECT_TRUE(zip.add("a/deflated", std::string(10000, 'x'), true).ok());
  EXPECT_TRUE(zip.add("a/empty", "", false).ok());
  return std::move(zip).finish();
}

std::string error_of(std::string bytes) {
  auto zip = ZipReader::open(own_bytes(std::move(bytes)));
  if (!zip.ok()) return zip.error().message;
  for (const ZipEntry& entry : zip->entries())
    if (auto read = zip->read(entry, 1 << 20, true); !read.ok()) return read.error().message;
  return "";
}

TEST(Zip, ReadsBackWhatItWrote) {
  auto zip = ZipReader::open(own_bytes(sample()));
  ASSERT_TRUE(zip.ok());
  ASSERT_EQ(zip->entries().size(), 3u);
  auto stored = zip->read(*zip->find("a/stored"), 100, true);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->text(), "hello");
  EXPECT_EQ(*zip->data_begin(*zip->find("a/stored")) % 64, 0u);
  auto deflated = zip->read(*zip->find("a/deflated"), 10000, true);
  ASSERT_TRUE(deflated.ok());
  EXPECT_EQ(deflated->text(), std::string(10000, 'x'));
  EXPECT_EQ(zip->find("a/none"), nullptr);
}

TEST(Zip, SizesAreBounded) {
  auto zip = ZipReader::open(own_bytes(sample()));
  ASSERT_TRUE(zip.ok());
  auto read = zip->read(*zip->find("a/deflated"), 9999, true);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, "too-large");
}

// The field of a directory record's zip64 part: 0 is the size, 1 the packed size, 2 the header.
void set_field(std::string& bytes, int entry, int field, uint64_t value) {
  size_t at = 0;
  for (int i = 0; i <= entry; ++i) at = bytes.find("PK\1\2", at + 1);
  const size_t name = static_cast<unsigned char>(bytes[at + 28]);
  for (size_t i = 0; i < 8; ++i)
    bytes[at + 46 + name + 4 + 8 * static_cast<size_t>(field) + i] =
        static_cast<char>(value >> (8 * i));
}

TEST(Zip, EntriesShareNoBytes) {
  std::string same = sample();
  set_field(same, 1, 2, 0);
  EXPECT_NE(error_of(same).find("overlaps entry"), std::string::npos) << error_of(same);
  ZipWriter zip(1);
  ASSERT_TRUE(zip.add("one", std::string(500, 'x'), false).ok());
  ASSERT_TRUE(zip.add("two", "y", false).ok());
  std::string longer = std::move(zip).finish();
  for (int field : {0, 1}) set_field(longer, 0, field, 600);
  EXPECT_EQ(error_of(longer), "entry 'one' (600 bytes at 0) overlaps entry 'two'");
  set_field(longer, 0, 0, 500);
  set_field(longer, 0, 1, 500);
  EXPECT_EQ(error_of(longer), "");
  set_field(longer, 1, 0, 200);
  set_field(longer, 1, 1, 200);
  EXPECT_NE(error_of(longer).find("overlaps the directory"), std::string::npos);
}

TEST(Zip, NothingInflatesToMoreThanItCan) {
  std::string bytes = sample();
  set_field(bytes, 1, 0, uint64_t{1} << 40);
  EXPECT_NE(error_of(bytes).find("cannot inflate to 1099511627776"), std::string::npos);
}

TEST(Zip, DeflatedEntriesAreBoundedTogether) {
  std::string noise(9 << 20, '\0');
  uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  ZipWriter zip;
  ASSERT_TRUE(zip.add("one", noise, true).ok());
  ASSERT_TRUE(zip.add("two", noise, true).ok());
  std::string bytes = std::move(zip).finish();
  const uint64_t half = uint64_t{8} << 30;  // which 9 MiB could stand for
  set_field(bytes, 0, 0, half);
  set_field(bytes, 1, 0, half + 1);
  auto refused = ZipReader::open(own_bytes(bytes));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "too-large");
  EXPECT_EQ(refused.error().message,
            "the deflated entries up to 'two' hold more than 17179869184 bytes");
  set_field(bytes, 1, 0, half);
  EXPECT_TRUE(ZipReader::open(own_bytes(bytes)).ok());
}

TEST(Zip, EveryTruncationIsAnError) {
  std::string bytes = sample();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(error_of(bytes.substr(0, size)), "") << size;
}

TEST(Zip, NoFlippedByteCrashesIt) {
  std::string bytes = sample();
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      error_of(std::move(changed));
    }
}

TEST(Zip, DamageInAnEntryIsFound) {
  std::string bytes = sample();
  bytes[bytes.find("hello")] = 'j';
  EXPECT_EQ(error_of(bytes), "entry 'a/stored' does not match its checksum");
}

TEST(Zip, DuplicateNamesAreRefused) {
  ZipWriter zip;
  ASSERT_TRUE(zip.add("a", "1", false).ok());
  ASSERT_TRUE(zip.add("a", "2", false).ok());
  EXPECT_EQ(error_of(std::move(zip).finish()), "two entries are named 'a'");
}

TEST(Inflate, StopsAtItsLimit) {
  auto packed = deflate_bytes(std::string(1 << 20, 'y'));
  ASSERT_TRUE(packed.ok());
  EXPECT_TRUE(inflate_bytes(*packed, DeflateFormat::raw, 1 << 20).ok());
  auto over = inflate_bytes(*packed, DeflateFormat::raw, (1 << 20) - 1);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, "too-large");
  auto cut = inflate_bytes(packed->substr(0, packed->size() / 2), DeflateFormat::raw, 1 << 20);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().message, "compressed data ends early");
}

}  // namespace
}  // namespace lathe
