// Zip files from text: what has no lies is read, and lies are told.
#include "tests/fuzz/zip_text.h"

#include <gtest/gtest.h>

#include "frontend/file/zip.h"

namespace lathe::fuzz {
namespace {

constexpr std::string_view kText =
    "@ a.txt\nfirst\nsecond\n@ b deflate times=3\nab\n@ c zip64\n@@ zip64\n";

TEST(ZipText, IsReadWhenItIsHonest) {
  const ZipText zip = zip_of(kText);
  EXPECT_TRUE(zip.is_honest);
  const auto reader = ZipReader::open(own_bytes(zip.file));
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const std::pair<const char*, const char*> expected[] = {
      {"a.txt", "first\nsecond"}, {"b", "ababab"}, {"c", ""}};
  ASSERT_EQ(reader->entries().size(), std::size(expected));
  for (const auto& [name, bytes] : expected) {
    const ZipEntry* entry = reader->find(name);
    ASSERT_NE(entry, nullptr) << name;
    const auto read = reader->read(*entry, 100, true);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->text(), bytes);
  }
}

TEST(ZipText, LiesAreNotHonest) {
  for (const char* text : {"@ a size=9\nx\n", "@ a crc=1\nx\n", "@ a\nx\n@ b as=0\n",
                           "@ a\nx\n@ a\nx\n", "@ a\nx\n@@ count=2\n"})
    EXPECT_FALSE(zip_of(text).is_honest) << text;
}

TEST(ZipText, AnEntryCanLieInAnother) {
  const auto reader = ZipReader::open(own_bytes(zip_of("@ a\nx\n@ b as=0\n").file));
  ASSERT_FALSE(reader.ok());
  EXPECT_NE(reader.error().message.find("overlaps"), std::string::npos) << reader.error().message;
}

}  // namespace
}  // namespace lathe::fuzz
