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
