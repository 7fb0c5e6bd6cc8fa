// How rows are cut into register tiles.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/type/dim.h"

namespace lathe {

// Cycles of one reduction step of a tile of h x v accumulators on a core with two FMA and two load
// ports: the most of its FMAs, its loads and the latency of a dependent FMA.
double step_cycles(int64_t h, int64_t v);

// `unit`s of `group` consecutive values of the second to last dim (more than one only when whole
// inner rows fit a tile together), each cut into balanced tiles of the last dim. Where that is a
// size, a ladder of tiles covers it: units are then blocks of `block_tiles` of its highest tiles,
// of which the last one has the others as well.
struct RowTiling {
  Dim inner = 1;           // extent of the last dim
  Dim middle = 1;          // extent of the second to last dim
  Dim outer = 1;           // product of the others
  int64_t group = 1;       // middle rows in one tile
  Dim groups = 1;          // of `group` middle rows, rounded up
  int64_t tall_tiles = 0;  // tiles of `height + 1` rows, before those of `height`
  int64_t short_tiles = 1;
  int64_t height = 1;       // at most, where a ladder covers the rows
  int64_t block_tiles = 0;  // 0: all
  Dim blocks = 1;
  bool has_ladder() const { return !inner.is_const(); }
  int64_t tiles() const { return tall_tiles + short_tiles; }
  Dim rows() const { return has_ladder() ? inner : Dim(height * tiles()); }  // of a unit, at most
  Dim units() const { return outer * groups * blocks; }
};
RowTiling tile_rows(std::span<const Dim> m, int64_t max_rows);

// So many tiles of `height` rows, from `first_row` on, behind `first_tile` others.
struct Rung {
  int64_t height;
  loop::Expr count, first_row, first_tile;
  Dim most = 1;  // of `count`
};
// Heights of tiles, falling, down to 1; a tile of less than `least` rows takes no less time.
struct RowLadder {
  std::vector<int64_t> heights;
  int64_t least = 1;
};
// With every height where the highest is low, or up to half of the highest, so that little time is
// lost on any number of rows; or with few of them, for code that is long. Without those that the
// least number of rows makes worth nothing. `rows`: of which there may be any number in the range,
// in tiles of at most `highest`, of so many vectors each.
RowLadder every_height(int64_t highest, int64_t vectors, const DimRange& rows);
RowLadder few_heights(int64_t highest, int64_t vectors, const DimRange& rows);
// Tiles that together have as many rows as there are, of which `most` is a bound: the highest, but
// for one that takes less time cut together with the rest, then those that take the least time.
// Their numbers are named in `block`: as sizes they would be sums of so many quotients of what may
// be a long expression that no caller could keep them.
std::vector<Rung> climb(loop::Kernel& kernel, loop::Block& block, const RowLadder& ladder,
                        loop::Expr rows, const Dim& most);

}  // namespace lathe
