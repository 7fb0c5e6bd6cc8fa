#include "ir/type/dim_names.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

Dim parsed(const std::string& text) {
  const Result<Dim> dim = parse_dim(text);
  EXPECT_TRUE(dim.ok()) << text;
  return dim.ok() ? *dim : Dim(0);
}

const char* const kTiles = "Max(0, Min((s0*s1 + 13)//14, 4096))";

// What `names` writes for each size, and its definitions, read back.
void expect_reads_back(const std::vector<Dim>& sizes, const DimNames& names) {
  std::map<std::string, Dim> parts;
  for (const auto& [name, text] : names.definitions())
    parts.emplace(name, parsed(text).substitute(parts));
  for (const Dim& size : sizes) EXPECT_EQ(parsed(names.spell(size)).substitute(parts), size);
}

TEST(DimNames, APartThatTwoSizesShareHasAName) {
  const Dim tiles = parsed(kTiles);
  const std::vector<Dim> sizes = {tiles * 14, tiles + Dim::symbol("s0"), Dim::symbol("s1") * 4};
  const DimNames names(sizes, {"s0", "s1"});
  ASSERT_EQ(names.definitions().size(), 1u);
  EXPECT_EQ(names.definitions()[0].second, tiles.str());
  EXPECT_EQ(names.spell(sizes[0]), "14*m0");
  EXPECT_EQ(names.spell(sizes[1]), "m0 + s0");
  EXPECT_EQ(names.spell(sizes[2]), "4*s1");
  expect_reads_back(sizes, names);
}

TEST(DimNames, AShortPartAndOneThatIsWrittenOnceHaveNone) {
  const std::vector<Dim> sizes = {parsed(kTiles), parsed("s0//2"), parsed("s0//2 + 1")};
  const DimNames names(sizes, {"s0", "s1"});
  EXPECT_TRUE(names.definitions().empty());
  EXPECT_EQ(names.spell(sizes[0]), sizes[0].str());
}

TEST(DimNames, PartsAreSpelledWithThePartsBeforeThem) {
  const Dim tiles = parsed(kTiles), rest = Dim::mod(tiles * 3 + 1, Dim::symbol("s1")),
            both = Dim::min(rest, tiles);
  const std::vector<Dim> sizes = {both * 2, both + 1, rest, tiles};
  const DimNames names(sizes, {"s0", "s1"});
  ASSERT_GE(names.definitions().size(), 2u);
  EXPECT_EQ(names.definitions()[0].second, tiles.str());
  EXPECT_NE(names.definitions()[1].second.find("m0"), std::string::npos);
  expect_reads_back(sizes, names);
}

TEST(DimNames, ASymbolKeepsItsName) {
  const Dim tiles = parsed("Max(0, Min((m0*s1 + 13)//14, 4096))");
  const std::vector<Dim> sizes = {tiles, tiles * 2};
  const DimNames names(sizes, {"m0", "s1"});
  ASSERT_EQ(names.definitions().size(), 1u);
  EXPECT_EQ(names.definitions()[0].first, "m1");
  expect_reads_back(sizes, names);
}

}  // namespace
}  // namespace lathe
