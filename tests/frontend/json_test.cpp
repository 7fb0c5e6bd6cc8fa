// The JSON reader: values, positions, limits.
#include "frontend/file/json.h"

#include <gtest/gtest.h>

namespace lathe::json {
namespace {

std::string error_of(std::string_view text, const Limits& limits = {}) {
  LocTable locs;
  auto document = parse(text, "m.json", locs, limits);
  return document.ok() ? "" : render(document.error(), locs);
}

TEST(Json, ReadsEveryKindOfValue) {
  LocTable locs;
  auto document = parse(R"({"a": [1, -2.5, "x\n\u00e9", true, null], "b": {}})", "m.json", locs);
  ASSERT_TRUE(document.ok());
  Value root = (*document)->root();
  ASSERT_EQ(root.size(), 2u);
  Value list = *root.member("a");
  ASSERT_EQ(list.size(), 5u);
  auto element = list.elements().begin();
  EXPECT_EQ((*element).integer(), 1);
  EXPECT_EQ((*++element).number(), -2.5);
  EXPECT_EQ((*++element).string(), "x\n\xc3\xa9");
  EXPECT_TRUE((*++element).boolean());
  EXPECT_TRUE((*++element).is_null());
  EXPECT_EQ((*root.member("b")).size(), 0u);
  EXPECT_FALSE(root.member("c"));
}

TEST(Json, KeepsLargeIntegersExact) {
  LocTable locs;
  auto document =
      parse("[9223372036854775807, -9223372036854775808, 9223372036854775808]", "m", locs);
  ASSERT_TRUE(document.ok());
  auto element = (*document)->root().elements().begin();
  EXPECT_EQ((*element).integer(), INT64_MAX);
  EXPECT_EQ((*++element).integer(), INT64_MIN);
  EXPECT_EQ((*++element).kind(), Kind::number);
}

TEST(Json, ValuesKnowWhereTheyStart) {
  LocTable locs;
  auto document = parse("{\n  \"a\" : [10,\n   \"x\"]\n}", "m.json", locs);
  ASSERT_TRUE(document.ok());
  Value list = *(*document)->root().member("a");
  Value second = *++list.elements().begin();
  const LocRow& row = locs[locate(**document, second.offset(), locs)];
  EXPECT_EQ(row.line, 3);
  EXPECT_EQ(row.column, 4);
  EXPECT_EQ(row.source_line, "   \"x\"]");
}

// Each place is found without reading all that lies before it, and keeps what a message shows.
TEST(Json, PlacesInLargeDocumentsCostLittle) {
  LocTable locs;
  std::string text = "[";
  for (int i = 0; i < 300000; ++i) text += i % 1000 == 999 ? "1,\n" : "1,";
  text += "1]";
  auto document = parse(text, "m", locs);
  ASSERT_TRUE(document.ok());
  int64_t i = 0;
  for (Value value : (*document)->root().elements()) {
    const LocRow& row = locs[locate(**document, value.offset(), locs)];
    ASSERT_EQ(row.line, i / 1000 + 1);
    ASSERT_EQ(row.column, i % 1000 * 2 + (i < 1000 ? 2 : 1));
    ASSERT_LE(row.source_line.size(), 2 * LocTable::kKeptOnEachSide);
    ++i;
  }
}

TEST(Json, SyntaxErrorsNameTheirPlace) {
  EXPECT_NE(error_of("{\"a\": 1,\n \"b\": }").find("m.json:2:7: error[syntax]"), std::string::npos)
      << error_of("{\"a\": 1,\n \"b\": }");
  for (const char* text : {"", "{", "[1,]", "\"", "{\"a\"}", "[1] 2", "nul", "\xff", "[1e999]"})
    EXPECT_NE(error_of(text).find("error[syntax]"), std::string::npos) << text;
}

TEST(Json, NestingAndSizeAreBounded) {
  EXPECT_NE(error_of(std::string(100000, '[')).find("nested deeper than 256"), std::string::npos);
  EXPECT_EQ(error_of(std::string(200, '[') + std::string(200, ']')), "");
  EXPECT_NE(error_of("[1, 2]", {.max_bytes = 3}).find("error[too-large]"), std::string::npos);
}

}  // namespace
}  // namespace lathe::json
