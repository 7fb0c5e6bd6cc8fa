// Tiles of rows: see row_tiling.h.
#include "ir/templates/row_tiling.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "ir/templates/ceil_div.h"

namespace lathe {
namespace {

using loop::Expr;

Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

constexpr int64_t kFewRows = 8;                 // of a tile, each number of which has code
constexpr int64_t kRowCost = 1, kTileCost = 2;  // of a row; of a tile, for its pass over B
constexpr double kWorthAHeight = 1.0 / 64;      // of the time that the least number of rows takes

// The tiles that together take the least time, of every number of rows up to `rows`: the last of
// them, and what all cost.
struct Cut {
  int64_t cost = 0, height = 0;
};
std::vector<Cut> cheapest_cuts(int64_t rows, std::span<const int64_t> heights, int64_t least) {
  std::vector<Cut> best(static_cast<size_t>(rows) + 1);
  for (int64_t r = 1; r <= rows; ++r) {
    Cut& cut = best[static_cast<size_t>(r)];
    for (int64_t height : heights) {
      if (height > r) continue;
      // Of equals fewer tiles, which cost a little each.
      const int64_t cost = best[static_cast<size_t>(r - height)].cost +
                           kRowCost * std::max(height, least) + kTileCost;
      if (cut.height == 0 || cost < cut.cost) cut = {cost, height};
    }
  }
  return best;
}

// The heights of those of so many rows.
std::vector<int64_t> cheapest_cut(int64_t rows, std::span<const int64_t> heights, int64_t least) {
  const std::vector<Cut> best = cheapest_cuts(rows, heights, least);
  std::vector<int64_t> tiles;
  for (; rows > 0; rows -= tiles.back()) tiles.push_back(best[static_cast<size_t>(rows)].height);
  return tiles;
}

// Leaves out heights whose work others do for next to nothing, the most code first.
void thin(RowLadder& ladder, int64_t least_rows) {
  const int64_t highest = ladder.heights.front();
  const std::vector<int64_t> all(ladder.heights.begin() + 1, ladder.heights.end());
  const std::vector<Cut> best = cheapest_cuts(highest, all, ladder.least);
  const double room = kWorthAHeight * static_cast<double>(least_rows * kRowCost);
  for (int64_t height : all) {
    if (height == 1) continue;
    RowLadder fewer = ladder;
    std::erase(fewer.heights, height);
    const std::vector<Cut> cuts =
        cheapest_cuts(highest, std::span(fewer.heights).subspan(1), ladder.least);
    bool is_worth_little = true;
    for (size_t rows = 1; rows < static_cast<size_t>(highest); ++rows)
      is_worth_little =
          is_worth_little && static_cast<double>(cuts[rows].cost - best[rows].cost) <= room;
    if (is_worth_little) ladder = std::move(fewer);
  }
}

RowLadder ladder_of(int64_t highest, int64_t vectors, const DimRange& rows,
                    std::vector<int64_t> lower) {
  highest = std::max<int64_t>(1, std::min(highest, rows.max.value_or(INT64_MAX)));
  RowLadder ladder{{highest}};
  std::sort(lower.rbegin(), lower.rend());
  for (int64_t height : lower)
    if (height < ladder.heights.back()) ladder.heights.push_back(height);
  while (ladder.least < highest &&
         step_cycles(ladder.least + 1, vectors) == step_cycles(1, vectors))
    ++ladder.least;
  thin(ladder, rows.min.value_or(0));
  return ladder;
}

// value(x), for an x in [0, most], of small values that are not negative: out of a number that has
// all of them, or by the places where it changes from value(0), which is 0.
template <class F>
Expr look_up(Expr x, int64_t most, F&& value) {
  loop::Pool& pool = *x->pool;
  int64_t all = 0;
  for (int64_t at = 0; at <= most; ++at) all |= value(at);
  const int64_t bits = std::bit_width(static_cast<uint64_t>(all));
  if (bits * (most + 1) < 64) {
    int64_t table = 0;
    for (int64_t at = most; at >= 0; --at) table = table << bits | value(at);
    const Expr shifted =
        loop::binary(loop::BinaryOp::shift_right, pool.integer(table), x * pool.integer(bits));
    return loop::binary(loop::BinaryOp::bit_and, shifted, pool.integer((int64_t{1} << bits) - 1));
  }
  Expr sum = pool.integer(0);
  for (int64_t at = 1; at <= most; ++at)
    if (const int64_t more = value(at) - value(at - 1); more != 0)
      sum = sum + loop::select(loop::le(pool.integer(at), x), pool.integer(more), pool.integer(0));
  return sum;
}

}  // namespace

double step_cycles(int64_t h, int64_t v) {
  return std::max({static_cast<double>(h * v) / 2, static_cast<double>(h + v) / 2, 4.0});
}

RowTiling tile_rows(std::span<const Dim> m, int64_t max_rows) {
  RowTiling t;
  t.inner = m.back();
  t.middle = m.size() > 1 ? m[m.size() - 2] : 1;
  t.outer = m.size() > 2 ? product(m.first(m.size() - 2)) : 1;
  t.groups = t.middle;
  if (t.has_ladder()) {
    t.height = max_rows;
    return t;
  }
  const int64_t inner = t.inner.value();
  if (inner * 2 <= max_rows && t.middle.is_const() && t.middle.value() > 1) {
    t.group = std::min(t.middle.value(), max_rows / inner);
    t.groups = ceil_div(t.middle, t.group);
    t.height = t.group * inner;
    return t;
  }
  const int64_t tiles = ceil_div(inner, max_rows);
  t.height = inner / tiles;
  t.tall_tiles = inner - t.height * tiles;
  t.short_tiles = tiles - t.tall_tiles;
  return t;
}

RowLadder every_height(int64_t highest, int64_t vectors, const DimRange& rows) {
  const int64_t most = std::min(highest, rows.max.value_or(INT64_MAX));
  const int64_t highest_lower = most <= kFewRows ? most : most / 2 + 1;
  std::vector<int64_t> lower(static_cast<size_t>(highest_lower));
  std::iota(lower.begin(), lower.end(), int64_t{1});
  return ladder_of(highest, vectors, rows, std::move(lower));
}

RowLadder few_heights(int64_t highest, int64_t vectors, const DimRange& rows) {
  const int64_t most = std::min(highest, rows.max.value_or(INT64_MAX));
  return ladder_of(highest, vectors, rows, {most / 2, 4, 3, 2, 1});
}

std::vector<Rung> climb(loop::Kernel& kernel, loop::Block& block, const RowLadder& ladder,
                        Expr rows, const Dim& most) {
  loop::Pool& pool = *rows->pool;
  const int64_t highest = ladder.heights.front();
  const std::span<const int64_t> lower = std::span(ladder.heights).subspan(1);
  const auto number = [&](int64_t value) { return pool.integer(value); };
  const auto let = [&](const char* name, Expr value, const Dim& at_most) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    const loop::Var var = kernel.add_loop_var(name, at_most + Dim(1));
    kernel.vars[var.id].kind = loop::VarKind::let;
    block.push_back({loop::Let{var, value}});
    return pool.var(var);
  };
  const std::vector<Cut> cuts = cheapest_cuts(2 * highest - 1, lower, ladder.least);
  // One less than fit, where there is one, for a rest that takes less time together with its rows.
  const auto is_joined = [&](int64_t rest) -> int64_t {
    return rest > 0 && rest < highest &&
           cuts[static_cast<size_t>(rest + highest)].cost <
               cuts[static_cast<size_t>(rest)].cost + kRowCost * highest + kTileCost;
  };
  int64_t most_left = highest - 1;
  for (int64_t rest = 1; rest < highest; ++rest)
    if (is_joined(rest)) most_left = highest + rest;
  rows = let("rows", rows, most);
  const Dim most_full = Dim::floor_div(most, highest);
  Expr full = let("fit", loop::floor_div(rows, number(highest)), most_full);
  if (most_left >= highest) {
    const Expr rest = let("rest", rows - full * number(highest), highest - 1);
    full =
        let("full", loop::max(full - look_up(rest, highest - 1, is_joined), number(0)), most_full);
  }
  const Expr left = let("left", rows - full * number(highest), most_left);

  std::vector<Rung> rungs = {{highest, full, number(0), number(0), most_full}};
  for (int64_t height : lower) {
    int64_t most_count = 0;
    const auto count_at = [&](int64_t at) -> int64_t {
      const std::vector<int64_t> tiles = cheapest_cut(at, lower, ladder.least);
      return std::count(tiles.begin(), tiles.end(), height);
    };
    for (int64_t at = 1; at <= most_left; ++at) most_count = std::max(most_count, count_at(at));
    const Rung last = rungs.back();
    rungs.push_back({height, let("count", look_up(left, most_left, count_at), most_count),
                     let("first_row", last.first_row + last.count * number(last.height), most),
                     let("first_tile", last.first_tile + last.count, most), most_count});
  }
  return rungs;
}

}  // namespace lathe
