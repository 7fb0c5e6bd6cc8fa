// The contraction template: see contraction.h for the shape of the loops.
#include "ir/templates/contraction.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/loop_nest.h"
#include "ir/templates/register_tile.h"
#include "ir/templates/row_tiling.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::Let;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kMinProductTasks = 16;    // enough for a few threads to share evenly
constexpr int64_t kTaskFlops = 2'000'000;   // about 10 us of one core
constexpr int64_t kRolledEpilogueOps = 10;  // beyond a bias, a residual and a clamp
constexpr int64_t kNarrowest = 32;          // vectors of which one saved is worth more code
constexpr double kThrashing = 1.3;          // slowdown when rows of A evict each other
constexpr double kStepInPlace = 8;          // cycles of going to where the next step of B lies
constexpr int64_t kFewTiles = 4;            // of rows, which would not pay for a packed B
constexpr int64_t kFewInCache = 16;         // steps of k that evict each other too soon
constexpr int64_t kManyRows = 2520;         // what a size of rows is taken for: whole tiles of all
constexpr int64_t kBlockTiles = 8;          // of the highest, in a block of rows
constexpr int64_t kFewerRows = 2;           // times fewer than the hint says are as usual
constexpr int64_t kManyTiles = 3;           // of the highest, beside which others take little time
// Of a panel. Where one tile of rows reads it all, panels are one long stream: processors see it
// coming, and half of it asked for ahead takes up to 28 % less time than none.
constexpr int64_t kFewestShares = 2;

Dim product(std::span<const Dim> dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

// What a size is taken for where only its order of magnitude matters: many, if it may be.
int64_t number_for(const ContractionSpec& spec, const Dim& size) {
  if (size.is_const()) return size.value();
  const int64_t most = size.bounds(spec.symbols).max.value_or(kManyRows);
  return std::clamp<int64_t>(most, 1, kManyRows);
}
std::vector<Dim> numbers_for(const ContractionSpec& spec, const std::vector<Dim>& sizes) {
  std::vector<Dim> numbers;
  for (const Dim& size : sizes) numbers.push_back(number_for(spec, size));
  return numbers;
}

// Rows of A that stay in the first cache together, or steps of B. A row is read a few elements at a
// time, line by line: rows that are a large power of two apart share cache sets, and more of them
// than a set has ways evict each other's lines before they are used up. One way is left to B, one
// to the result.
int64_t rows_in_cache(int64_t row_bytes, const Target& target) {
  const int64_t line = target.line_bytes, sets = target.l1_bytes / (line * target.l1_ways);
  if (row_bytes == 0 || row_bytes % line != 0) return INT64_MAX;
  return sets / std::gcd(row_bytes / line, sets) * (target.l1_ways - 2);
}

// What may be chosen from. Where B lies, its steps are far apart: also a tile as wide as registers
// allow, for panels alike. A lone row needs none for columns, which it reads once.
std::vector<RegisterTile> tiles_of(const ContractionSpec& spec, const Target& target) {
  if (spec.tile) return {*spec.tile};
  std::vector<RegisterTile> tiles = target.gemm_tiles;
  if (!spec.b) return tiles;
  const RowTiling tiling = tile_rows(numbers_for(spec, spec.m), tiles.front().rows);
  const int64_t rows = tiling.height + (tiling.tall_tiles > 0 ? 1 : 0);
  const int64_t room = target.num_vector_registers - (rows > 1 ? 1 : 0);
  const int64_t most = std::max<int64_t>(1, room / (rows + 1));
  const int64_t vectors = ceil_div(number_for(spec, spec.n), target.lanes(dtype_bytes(spec.dtype)));
  const int64_t panels = std::max<int64_t>(1, ceil_div(vectors, most));
  tiles.push_back({static_cast<int>(rows), static_cast<int>(ceil_div(vectors, panels))});
  return tiles;
}

class Contraction {
 public:
  Contraction(loop::Kernel& kernel, const ContractionSpec& spec, const PackedLayout& layout,
              loop::BufferRef packed, const Target& target)
      : kernel_(kernel),
        pool_(*kernel.pool),
        spec_(spec),
        layout_(layout),
        packed_(packed),
        steps_(steps_of(spec)),
        lanes_(target.lanes(dtype_bytes(spec.dtype))),
        has_masked_memory_(target.has_masked_memory),
        rows_(tile_rows(spec.m, layout.tile.rows)) {}

  void build() {
    Block body;
    climb_rows(body);
    const Dim panels = layout_.batches * layout_.panels;
    const Dim chunks = cut_chunks(panels);
    const Dim tasks = panels * chunks;
    const Var task = kernel_.add_loop_var("task", tasks);
    const Expr chunk = let(body, "chunk", loop::mod(pool_.var(task), pool_.size(chunks)), chunks);
    panel_ = let(body, "panel", loop::floor_div(pool_.var(task), pool_.size(chunks)), panels);
    Expr column_panel = panel_;
    if (layout_.batches != Dim(1)) {
      column_panel =
          let(body, "column_panel", loop::mod(panel_, pool_.size(layout_.panels)), layout_.panels);
      batch_ = unflatten(body, loop::floor_div(panel_, pool_.size(layout_.panels)), spec_.batch,
                         "batch");
    } else {
      batch_.assign(spec_.batch.size(), pool_.integer(0));
    }
    first_column_ = let(body, "column", column_panel * pool_.integer(layout_.panel_width),
                        (layout_.panels - Dim(1)) * Dim(layout_.panel_width) + Dim(1));
    first_unit_ = chunk * pool_.size(units_per_chunk_);
    const bool is_exact = layout_.panels * Dim(layout_.panel_width) == spec_.n;
    if (!is_cut_twice()) {
      emit_units(body, layout_.last_vectors, !is_exact);
    } else {
      Block whole, last;
      emit_units(whole, layout_.tile.vectors, false);
      first_column_ = pool_.size((layout_.panels - Dim(1)) * Dim(layout_.panel_width));
      emit_units(last, layout_.last_vectors, !is_exact);
      const Expr is_whole = loop::lt(column_panel, pool_.size(layout_.panels - Dim(1)));
      body.push_back({loop::If{is_whole, std::move(whole), std::move(last)}});
    }
    kernel_.body.push_back(
        {For{task, pool_.integer(0), pool_.size(tasks), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  // A size of rows is cut into blocks where panels are too few to be tasks.
  void climb_rows(Block& block) {
    if (!rows_.has_ladder()) return;
    DimRange range = rows_.inner.bounds(kernel_.symbols);
    const int64_t least = size_at(rows_.inner, spec_.hints) / kFewerRows;
    range.min = std::max(range.min.value_or(0), least);
    is_long_ = *range.min >= kManyTiles * layout_.tile.rows;
    const auto ladder = is_long_ || is_cut_twice() ? few_heights : every_height;
    rungs_ = climb(kernel_, block, ladder(rows_.height, layout_.tile.vectors, range),
                   pool_.size(rows_.inner), rows_.inner);
    rows_.height = rungs_.front().height;
    const Dim panels = layout_.batches * layout_.panels;
    if (!panels.is_const() || panels.value() >= kMinProductTasks) return;
    rows_.block_tiles = kBlockTiles;
    rows_.blocks = Dim::max(1, ceil_div(rows_.inner, kBlockTiles * rows_.height));
  }

  // Whether whole panels and the last one have code of their own.
  bool is_cut_twice() const {
    const bool is_alike = layout_.last_vectors == layout_.tile.vectors;
    return layout_.panels != Dim(1) && !(is_alike && (spec_.n.is_const() || has_masked_memory_));
  }

  Dim flops_per_unit() const {
    const Dim rows = rows_.block_tiles > 0 ? Dim(rows_.block_tiles * rows_.height) : rows_.rows();
    return Dim(2) * rows * Dim(layout_.panel_width) * layout_.depth;
  }

  // Tasks of a panel: chunks of units.
  Dim cut_chunks(const Dim& panels) {
    const Dim units = rows_.units(), flops = flops_per_unit();
    const Dim enough = ceil_div(Dim(kMinProductTasks), panels);
    Dim chunks = 1;
    if (enough != Dim(1) && units != Dim(1))
      chunks =
          Dim::max(1, Dim::min(Dim::min(enough, units), Dim::floor_div(units * flops, kTaskFlops)));
    units_per_chunk_ = ceil_div(units, chunks);
    chunks = Dim::max(1, ceil_div(units, units_per_chunk_));
    if (chunks.is_too_large()) {
      units_per_chunk_ = units;
      chunks = 1;
    }
    kernel_.grain = std::max<int64_t>(
        1, kTaskFlops / std::max<int64_t>(1, size_at(flops * units_per_chunk_, spec_.hints)));
    return chunks;
  }

  // In [0, extent).
  Expr let(Block& block, const char* name, Expr value, const Dim& extent) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    const Var var = kernel_.add_loop_var(name, extent);
    kernel_.vars[var.id].kind = loop::VarKind::let;
    block.push_back({Let{var, value}});
    return pool_.var(var);
  }

  std::vector<Expr> unflatten(Block& block, Expr position, std::span<const Dim> dims,
                              const char* name) {
    std::vector<Expr> index(dims.size());
    for (size_t i = dims.size(); i-- > 0;) {
      index[i] = dims[i] == Dim(1)
                     ? pool_.integer(0)
                     : let(block, name,
                           i == 0 ? position : loop::mod(position, pool_.size(dims[i])), dims[i]);
      position = loop::floor_div(position, pool_.size(dims[i]));
    }
    return index;
  }

  // Of the task's panel so many vectors.
  void emit_units(Block& block, int vectors, bool is_masked) {
    vectors_ = vectors;
    is_masked_ = is_masked;
    const Dim units = rows_.units();
    const Var unit = kernel_.add_loop_var("unit", units);
    unit_ = pool_.var(unit);
    Block inside;
    emit_unit(inside);
    const Expr hi = loop::min(first_unit_ + pool_.size(units_per_chunk_), pool_.size(units));
    block.push_back({For{unit, first_unit_, hi, 1, LoopKind::serial, std::move(inside)}});
  }

  void emit_unit(Block& block) {
    Expr at = unit_, row_block = pool_.integer(0);
    if (rows_.block_tiles > 0) {
      row_block = let(block, "row_block", loop::mod(at, pool_.size(rows_.blocks)), rows_.blocks);
      at = loop::floor_div(at, pool_.size(rows_.blocks));
    }
    Expr group = let(block, "group", loop::mod(at, pool_.size(rows_.groups)), rows_.groups);
    const size_t num_outer = spec_.m.size() > 2 ? spec_.m.size() - 2 : 0;
    outer_ = unflatten(block, loop::floor_div(at, pool_.size(rows_.groups)),
                       std::span(spec_.m).first(num_outer), "outer");
    group_ = group;
    if (rows_.has_ladder()) return emit_ladder(block, row_block);
    if (rows_.group > 1) {
      const int64_t rest = rows_.middle.value() % rows_.group;
      if (rest == 0) return emit_tile(block, rows_.height, pool_.integer(0), pool_.integer(0));
      Block whole, partial;
      emit_tile(whole, rows_.height, pool_.integer(0), pool_.integer(0));
      emit_tile(partial, rest * rows_.inner.value(), pool_.integer(0), pool_.integer(0));
      block.push_back({loop::If{loop::lt(group, pool_.size(rows_.groups - Dim(1))),
                                std::move(whole), std::move(partial)}});
      return;
    }
    const int64_t tall = rows_.height + 1;
    const auto number = [&](int64_t value) { return pool_.integer(value); };
    if (rows_.tall_tiles > 0)
      emit_tiles(block, {tall, number(rows_.tall_tiles), number(0), number(0), rows_.tall_tiles});
    if (rows_.short_tiles > 0)
      emit_tiles(block, {rows_.height, number(rows_.short_tiles), number(rows_.tall_tiles * tall),
                         number(rows_.tall_tiles), rows_.short_tiles});
  }

  // The highest tiles of a block, and behind the last of those all the others.
  void emit_ladder(Block& block, Expr row_block) {
    if (rows_.block_tiles == 0) {
      for (const Rung& rung : rungs_) emit_tiles(block, rung);
      return;
    }
    const Expr in_block = pool_.integer(rows_.block_tiles), none = pool_.integer(0);
    Rung full = rungs_.front();
    const Expr first_tile = row_block * in_block;
    full.first_row = first_tile * pool_.integer(full.height);
    full.count = loop::max(none, loop::min(in_block, full.count - first_tile));
    full.most = kBlockTiles;
    emit_tiles(block, full);
    const Expr is_last = loop::eq(row_block, pool_.size(rows_.blocks - Dim(1)));
    for (Rung rung : std::span(rungs_).subspan(1)) {
      rung.count = loop::select(is_last, rung.count, none);
      rung.first_tile = in_block;
      emit_tiles(block, rung);
    }
  }

  void emit_tiles(Block& block, const Rung& rung) {
    const Var tile = kernel_.add_loop_var("tile", rung.most);
    Block inside;
    emit_tile(inside, rung.height, pool_.var(tile) * pool_.integer(rung.height) + rung.first_row,
              pool_.var(tile) + rung.first_tile);
    block.push_back(
        {For{tile, pool_.integer(0), rung.count, 1, LoopKind::serial, std::move(inside)}});
  }

  // Row i of the tile as an index into the m dims.
  std::vector<Expr> row_index(Expr first_row, Expr i) {
    std::vector<Expr> index = outer_;
    if (rows_.group > 1) {
      index.push_back(group_ * pool_.integer(rows_.group) +
                      loop::floor_div(i, pool_.size(rows_.inner)));
      index.push_back(loop::mod(i, pool_.size(rows_.inner)));
    } else {
      if (spec_.m.size() > 1) index.push_back(group_);
      index.push_back(first_row + i);
    }
    return index;
  }

  void emit_tile(Block& block, int64_t height, Expr first_row, Expr ordinal) {
    RegisterTileSpec tile;
    tile.rows = height;
    tile.vectors = vectors_;
    tile.lanes = lanes_;
    tile.dtype = spec_.dtype;
    // Lower rungs are many, of few tiles each: the code behind their reductions is short.
    const bool is_lower = rows_.has_ladder() && height < rows_.height;
    for (const Dim& steps : steps_) tile.k_vars.push_back(kernel_.add_loop_var("k", steps));
    tile.k_extents = steps_;
    tile.is_paired = spec_.is_paired;
    tile.shares_elements = spec_.rows_overlap;
    tile.is_short = is_lower && is_long_;
    tile.has_last_apart = spec_.is_paired && spec_.k.back().value() % 2 != 0;
    tile.a = [&](Expr i, std::span<const Expr> k) {
      const std::vector<Expr> m = row_index(first_row, i);
      return spec_.is_paired ? pair(m, k) : spec_.a(batch_, m, k);
    };
    tile.b = [&](Expr j, std::span<const Expr> k) {
      if (spec_.b) return columns_in_place(k, first_column_ + j * pool_.integer(lanes_));
      Expr at =
          (panel_ * pool_.size(layout_.depth) + depth_of(k)) * pool_.integer(layout_.panel_width) +
          j * pool_.integer(lanes_);
      return pool_.load(packed_, at, spec_.is_paired ? DType::i32 : spec_.dtype, lanes_);
    };
    // The epilogue's expression is made once, over a column and a sum that each vector then
    // supplies.
    Var row = kernel_.add_var({"i", loop::VarKind::loop, DType::i64, 1, 0, height - 1});
    Var column = column_var();
    Var sum_var =
        kernel_.add_var({"sum", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    Expr sum_read = pool_.var(sum_var, spec_.dtype);
    const ResultElement result =
        spec_.epilogue(batch_, row_index(first_row, pool_.var(row)), pool_.var(column), sum_read);
    tile.roll_epilogue =
        (is_lower && height > 1) || count_operations({&result.value, 1}) > kRolledEpilogueOps;
    tile.epilogue = [&](Block& inside, Expr i, Expr j, Expr sum) {
      Expr at = first_column_ + j * pool_.integer(lanes_);
      const loop::VectorAxis axis = column_axis(column);
      loop::Bindings bound = {{sum_read.node(), sum}};
      auto place = [&](Expr e) {
        return loop::substitute(loop::substitute(e, column, at), row, i);
      };
      Expr value = loop::vectorize(result.value, axis, bound);
      inside.push_back({loop::Store{result.buffer, place(result.index), place(value),
                                    axis.mask ? place(axis.mask) : Expr{}, false}});
    };
    // Of one row so little is to do for each line that a processor sees many lines ahead.
    if (!spec_.b && height > 1 && !tile.is_short) {
      tile.prefetch = [&](Block& inside, std::span<const Expr> k) {
        emit_prefetch(inside, ordinal, k);
      };
    }
    emit_register_tile(kernel_, tile, block);
  }

  Var column_var() {
    const Var column = kernel_.add_loop_var("n", spec_.n);
    kernel_.vars[column.id].kind = loop::VarKind::let;
    return column;
  }

  // Lanes that are columns from `column` on.
  loop::VectorAxis column_axis(Var column) {
    loop::VectorAxis axis{column, lanes_, {}};
    if (is_masked_)
      axis.mask = loop::lt(pool_.ramp(pool_.var(column), 1, lanes_),
                           loop::splat(pool_.size(spec_.n), lanes_));
    return axis;
  }

  // A vector of B from column `first` on.
  Expr columns_in_place(std::span<const Expr> k, Expr first) {
    const Var column = column_var();
    const Expr element = spec_.b(batch_, k, pool_.var(column));
    return loop::substitute(loop::vectorize(element, column_axis(column)), column, first);
  }

  // Two elements of A as they lie, or the last one and a zero.
  Expr pair(std::span<const Expr> m, std::span<const Expr> k) {
    std::vector<Expr> first(k.begin(), k.end());
    first.back() = first.back() * pool_.integer(2);
    const Expr element = spec_.a(batch_, m, first);
    if (const loop::IntConst* at = loop::as_int(first.back());
        at != nullptr && Dim(at->value + 1) == spec_.k.back()) {
      const Expr word = loop::cast(loop::bitcast(element, DType::i16), DType::i32);
      return loop::binary(loop::BinaryOp::bit_and, word, pool_.integer(0xffff, DType::i32));
    }
    const auto& load = std::get<loop::Load>(element->kind);
    return loop::bitcast(pool_.load(load.buffer, load.index, DType::bf16, 2), DType::i32);
  }

  // Row-major position of a step in the reduction.
  Expr depth_of(std::span<const Expr> k) {
    Expr depth = k[0];
    for (size_t i = 1; i < k.size(); ++i) depth = depth * pool_.size(steps_[i]) + k[i];
    return depth;
  }

  // The next panel, a share of it for each tile of rows that this panel serves: where their number
  // is a size, so is the share, and lines are asked for as if there were few.
  void emit_prefetch(Block& block, Expr ordinal, std::span<const Expr> k) {
    const int64_t line = 64 / dtype_bytes(spec_.dtype), width = layout_.panel_width;
    const Dim tiles_per_unit = tiles_of_unit();
    const Dim tiles = units_per_chunk_ * tiles_per_unit;
    const int64_t fewest =
        tiles.is_const() ? std::max(kFewestShares, tiles.value()) : kFewestShares;
    // Elements per reduction step.
    const Dim share = Dim::max(1, Dim::floor_div(width, Dim::max(fewest, tiles)));
    const int64_t unroll = steps_.back().is_const() ? reduction_unroll(steps_.back().value()) : 4;
    const int64_t lines =
        std::max<int64_t>(1, width / std::max<int64_t>(1, fewest) * unroll / line);
    Expr tile = (unit_ - first_unit_) * pool_.size(tiles_per_unit) + ordinal;
    Expr at = (panel_ + pool_.integer(1)) * pool_.size(layout_.depth * Dim(width)) +
              (tile * pool_.size(layout_.depth) + depth_of(k)) * pool_.size(share);
    for (int64_t i = 0; i < lines; ++i) {
      block.push_back({loop::Prefetch{packed_, at + pool_.integer(i * line), 2}});
    }
  }

  Dim tiles_of_unit() const {
    if (!rows_.has_ladder()) return rows_.tiles();
    if (rows_.block_tiles > 0) return rows_.block_tiles;
    return Dim::max(1, ceil_div(rows_.inner, rows_.height));
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ContractionSpec& spec_;
  const PackedLayout& layout_;
  loop::BufferRef packed_;
  std::vector<Dim> steps_;  // of the reduction, by dim
  int lanes_;
  bool has_masked_memory_;
  RowTiling rows_;
  std::vector<Rung> rungs_;  // of rows that are a size
  bool is_long_ = false;     // most of these are in the highest tiles
  Dim units_per_chunk_ = 1;
  int vectors_ = 1;  // of the panel at hand
  bool is_masked_ = false;
  Expr panel_, first_column_, unit_, first_unit_, group_;
  std::vector<Expr> batch_, outer_;
};

}  // namespace

std::vector<Dim> steps_of(const ContractionSpec& spec) {
  std::vector<Dim> steps = spec.k;
  if (spec.is_paired) steps.back() = ceil_div(steps.back(), 2);
  return steps;
}

PackedLayout packed_layout(const ContractionSpec& spec, const Target& target) {
  const int lanes = target.lanes(dtype_bytes(spec.dtype));
  const int64_t cached_rows = rows_in_cache(spec.row_bytes, target);
  PackedLayout best;
  double best_cycles = 0;
  const double beside = spec.b ? kStepInPlace : 0;
  const std::vector<Dim> m = numbers_for(spec, spec.m);
  const int64_t vectors = ceil_div(number_for(spec, spec.n), lanes);
  for (const RegisterTile& tile : tiles_of(spec, target)) {
    const int64_t width = static_cast<int64_t>(tile.vectors) * lanes;
    const int64_t panels = ceil_div(vectors, tile.vectors);
    const int64_t left = vectors - (panels - 1) * tile.vectors;
    const bool is_narrower = panels == 1 || spec.b || (tile.vectors - left) * kNarrowest > vectors;
    const int last_vectors = is_narrower ? static_cast<int>(left) : tile.vectors;
    const RowTiling rows = tile_rows(m, tile.rows);
    const bool is_thrashing = rows.height > cached_rows;
    const auto panel_cycles = [&](int count) {
      return static_cast<double>(rows.tall_tiles) * (step_cycles(rows.height + 1, count) + beside) +
             static_cast<double>(rows.short_tiles) * (step_cycles(rows.height, count) + beside);
    };
    const double cycles =
        (is_thrashing ? kThrashing : 1.0) * static_cast<double>(rows.units().value()) *
        (static_cast<double>(panels - 1) * panel_cycles(tile.vectors) + panel_cycles(last_vectors));
    if (best.panel_width == 0 || cycles < best_cycles * 0.98) {
      best.tile = tile;
      best.panels = ceil_div(spec.n, width);
      best.last_vectors = spec.n.is_const() ? last_vectors : tile.vectors;
      best.panel_width = width;
      best_cycles = cycles;
    }
  }
  best.depth = product(steps_of(spec));
  best.batches = product(spec.batch);
  return best;
}

bool is_read_in_place(const ContractionSpec& spec, int64_t step_bytes, const Target& target) {
  const bool is_whole = Dim::mod(spec.n, target.lanes(dtype_bytes(spec.dtype))) == Dim(0);
  if (spec.is_paired || (!is_whole && !target.has_masked_memory)) return false;
  const RegisterTile tile = packed_layout(spec, target).tile;
  const RowTiling rows = tile_rows(numbers_for(spec, spec.m), tile.rows);
  // Lines that the next tile finds evicted come sooner where several lie side by side.
  const bool is_evicted = rows_in_cache(step_bytes, target) < kFewInCache;
  const int64_t lines = tile.vectors * target.vector_bytes / target.line_bytes;
  return rows.units().value() * rows.tiles() <=
         (is_evicted ? std::max<int64_t>(1, lines) : kFewTiles);
}

void build_contraction(loop::Kernel& kernel, const ContractionSpec& spec,
                       const PackedLayout& layout, loop::BufferRef packed, const Target& target) {
  Contraction(kernel, spec, layout, packed, target).build();
}

}  // namespace lathe
