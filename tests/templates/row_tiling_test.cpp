// Tiles that cover rows: all of them once, in as little time as a core allows.
#include "ir/templates/row_tiling.h"

#include <gtest/gtest.h>

namespace lathe {
namespace {

using loop::Expr;

constexpr DimRange kAnyRows = {1, 4096};

int64_t value(Expr e) {
  const loop::IntConst* number = loop::as_int(e);
  EXPECT_NE(number, nullptr);
  return number ? number->value : -1;
}

// The heights of the tiles that cover `rows`, in order.
std::vector<int64_t> tiles_of(const RowLadder& ladder, int64_t rows) {
  loop::Kernel kernel;
  kernel.pool = std::make_shared<loop::Pool>();
  loop::Block named;
  std::vector<int64_t> heights;
  int64_t covered = 0;
  for (const Rung& rung : climb(kernel, named, ladder, kernel.pool->integer(rows), rows)) {
    const int64_t count = value(rung.count);
    EXPECT_GE(count, 0) << rows;
    EXPECT_LE(count, rung.most.value()) << rows;
    if (count <= 0) continue;
    EXPECT_EQ(value(rung.first_row), covered) << rows;
    EXPECT_EQ(value(rung.first_tile), static_cast<int64_t>(heights.size())) << rows;
    covered += count * rung.height;
    heights.insert(heights.end(), static_cast<size_t>(count), rung.height);
  }
  EXPECT_EQ(covered, rows);
  EXPECT_TRUE(named.empty());
  return heights;
}

double cycles(const std::vector<int64_t>& tiles, int64_t vectors) {
  double sum = 0;
  for (int64_t height : tiles) sum += step_cycles(height, vectors);
  return sum;
}

TEST(RowTiling, EveryNumberOfRowsIsCoveredOnce) {
  for (int64_t highest = 1; highest <= 14; ++highest)
    for (int64_t vectors = 1; vectors <= 4; ++vectors)
      for (const RowLadder& ladder :
           {every_height(highest, vectors, kAnyRows), few_heights(highest, vectors, kAnyRows)})
        for (int64_t rows = 0; rows <= 64; ++rows) tiles_of(ladder, rows);
}

// Three rows take the time of four: a sum waits for the one before it.
TEST(RowTiling, ATileOfFewRowsIsNotTakenBesideAnotherThatCouldHaveHadThem) {
  const RowLadder ladder = every_height(6, 2, kAnyRows);
  EXPECT_EQ(tiles_of(ladder, 8), std::vector<int64_t>({4, 4}));
  EXPECT_EQ(tiles_of(ladder, 14), std::vector<int64_t>({6, 4, 4}));
}

// The rest joins one tile of the highest, not more of them: 13 rows are 6, 4, 3 and not 5, 4, 4.
TEST(RowTiling, WhereEveryHeightHasCodeACycleIsLostAtMostToTilesOfEqualHeight) {
  const RowLadder ladder = every_height(6, 2, kAnyRows);
  EXPECT_EQ(tiles_of(ladder, 13), std::vector<int64_t>({6, 4, 3}));
  for (int64_t rows = 1; rows <= 64; ++rows) {
    const Dim extent[] = {rows};
    const RowTiling even = tile_rows(extent, 6);
    std::vector<int64_t> tiles(static_cast<size_t>(even.short_tiles), even.height);
    tiles.insert(tiles.end(), static_cast<size_t>(even.tall_tiles), even.height + 1);
    EXPECT_LE(cycles(tiles_of(ladder, rows), 2), cycles(tiles, 2) + 1) << rows;
  }
}

}  // namespace
}  // namespace lathe
