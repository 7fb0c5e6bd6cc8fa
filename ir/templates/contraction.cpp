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

int64_t product(std::span<const int64_t> dims) {
  int64_t result = 1;
  for (int64_t dim : dims) result *= dim;
  return result;
}

// How the rows are cut: `unit`s of `group` consecutive values of the second to last dim (more than
// one only when whole inner rows fit a tile together), each cut into balanced tiles of the last
// dim.
struct RowTiling {
  int64_t inner = 1;       // extent of the last dim
  int64_t middle = 1;      // extent of the second to last dim
  int64_t outer = 1;       // product of the others
  int64_t group = 1;       // middle rows in one tile
  int64_t groups = 1;      // of `group` middle rows, rounded up
  int64_t tall_tiles = 0;  // tiles of `height + 1` rows, before those of `height`
  int64_t short_tiles = 1;
  int64_t height = 1;
  int64_t tiles() const { return tall_tiles + short_tiles; }
  int64_t units() const { return outer * groups; }
};

RowTiling tile_rows(const std::vector<int64_t>& m, int64_t max_rows) {
  RowTiling t;
  t.inner = m.back();
  t.middle = m.size() > 1 ? m[m.size() - 2] : 1;
  t.outer = m.size() > 2 ? product(std::span(m).first(m.size() - 2)) : 1;
  if (t.inner * 2 <= max_rows && t.middle > 1) {
    t.group = std::min(t.middle, max_rows / t.inner);
    t.groups = (t.middle + t.group - 1) / t.group;
    t.height = t.group * t.inner;
    return t;
  }
  t.groups = t.middle;
  const int64_t tiles = (t.inner + max_rows - 1) / max_rows;
  t.height = t.inner / tiles;
  t.tall_tiles = t.inner - t.height * tiles;
  t.short_tiles = tiles - t.tall_tiles;
  return t;
}

// Cycles of one reduction step of a tile of h x v accumulators on a core with two FMA and two load
// ports: the most of its FMAs, its loads and the latency of a dependent FMA.
double step_cycles(int64_t h, int64_t v) {
  return std::max({static_cast<double>(h * v) / 2, static_cast<double>(h + v) / 2, 4.0});
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
  const RowTiling tiling = tile_rows(spec.m, tiles.front().rows);
  const int64_t rows = tiling.height + (tiling.tall_tiles > 0 ? 1 : 0);
  const int64_t room = target.num_vector_registers - (rows > 1 ? 1 : 0);
  const int64_t most = std::max<int64_t>(1, room / (rows + 1));
  const int64_t vectors = ceil_div(spec.n, target.lanes(dtype_bytes(spec.dtype)));
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
        rows_(tile_rows(spec.m, layout.tile.rows)) {}

  void build() {
    const int64_t units = rows_.units();
    const int64_t panels = layout_.batches * layout_.panels;
    const int64_t flops_per_unit =
        2 * rows_.height * rows_.tiles() * layout_.panel_width * layout_.depth;
    int64_t chunks = std::clamp<int64_t>((kMinProductTasks + panels - 1) / panels, 1, units);
    chunks = std::max<int64_t>(1, std::min(chunks, units * flops_per_unit / kTaskFlops));
    units_per_chunk_ = (units + chunks - 1) / chunks;
    chunks = (units + units_per_chunk_ - 1) / units_per_chunk_;

    Block body;
    const int64_t tasks = panels * chunks;
    Var task = kernel_.add_var({"task", loop::VarKind::loop, DType::i64, 1, 0, tasks - 1});
    Expr chunk = let(body, "chunk", loop::mod(pool_.var(task), pool_.integer(chunks)), chunks - 1);
    panel_ =
        let(body, "panel", loop::floor_div(pool_.var(task), pool_.integer(chunks)), panels - 1);
    Expr column_panel = panel_;
    if (layout_.batches > 1) {
      column_panel = let(body, "column_panel", loop::mod(panel_, pool_.integer(layout_.panels)),
                         layout_.panels - 1);
      batch_ = unflatten(body, loop::floor_div(panel_, pool_.integer(layout_.panels)), spec_.batch,
                         "batch");
    } else {
      batch_.assign(spec_.batch.size(), pool_.integer(0));
    }
    first_column_ = let(body, "column", column_panel * pool_.integer(layout_.panel_width),
                        (layout_.panels - 1) * layout_.panel_width);
    first_unit_ = chunk * pool_.integer(units_per_chunk_);
    const bool is_exact = layout_.panels * layout_.panel_width == spec_.n;
    if (layout_.panels == 1 || layout_.last_vectors == layout_.tile.vectors) {
      emit_units(body, layout_.last_vectors, !is_exact);
    } else {
      Block whole, last;
      emit_units(whole, layout_.tile.vectors, false);
      first_column_ = pool_.integer((layout_.panels - 1) * layout_.panel_width);
      emit_units(last, layout_.last_vectors, !is_exact);
      const Expr is_whole = loop::lt(column_panel, pool_.integer(layout_.panels - 1));
      body.push_back({loop::If{is_whole, std::move(whole), std::move(last)}});
    }
    kernel_.grain =
        std::max<int64_t>(1, kTaskFlops / std::max<int64_t>(1, flops_per_unit * units_per_chunk_));
    kernel_.body.push_back({For{task, pool_.integer(0), pool_.integer(tasks), 1, LoopKind::parallel,
                                std::move(body)}});
  }

 private:
  Expr let(Block& block, const char* name, Expr value, int64_t max) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    Var var =
        kernel_.add_var({name, loop::VarKind::let, DType::i64, 1, 0, std::max<int64_t>(0, max)});
    block.push_back({Let{var, value}});
    return pool_.var(var);
  }

  std::vector<Expr> unflatten(Block& block, Expr position, std::span<const int64_t> dims,
                              const char* name) {
    std::vector<Expr> index(dims.size());
    for (size_t i = dims.size(); i-- > 0;) {
      index[i] = dims[i] == 1 ? pool_.integer(0)
                              : let(block, name,
                                    i == 0 ? position : loop::mod(position, pool_.integer(dims[i])),
                                    dims[i] - 1);
      position = loop::floor_div(position, pool_.integer(dims[i]));
    }
    return index;
  }

  // Of the task's panel so many vectors.
  void emit_units(Block& block, int vectors, bool is_masked) {
    vectors_ = vectors;
    is_masked_ = is_masked;
    const int64_t units = rows_.units();
    const Var unit = kernel_.add_var({"unit", loop::VarKind::loop, DType::i64, 1, 0, units - 1});
    unit_ = pool_.var(unit);
    Block inside;
    emit_unit(inside);
    const Expr hi = loop::min(first_unit_ + pool_.integer(units_per_chunk_), pool_.integer(units));
    block.push_back({For{unit, first_unit_, hi, 1, LoopKind::serial, std::move(inside)}});
  }

  void emit_unit(Block& block) {
    Expr group =
        let(block, "group", loop::mod(unit_, pool_.integer(rows_.groups)), rows_.groups - 1);
    const size_t num_outer = spec_.m.size() > 2 ? spec_.m.size() - 2 : 0;
    outer_ = unflatten(block, loop::floor_div(unit_, pool_.integer(rows_.groups)),
                       std::span(spec_.m).first(num_outer), "outer");
    group_ = group;
    if (rows_.group > 1) {
      const int64_t rest = rows_.middle % rows_.group;
      if (rest == 0) return emit_tile(block, rows_.height, pool_.integer(0), pool_.integer(0));
      Block whole, partial;
      emit_tile(whole, rows_.height, pool_.integer(0), pool_.integer(0));
      emit_tile(partial, rest * rows_.inner, pool_.integer(0), pool_.integer(0));
      block.push_back({loop::If{loop::lt(group, pool_.integer(rows_.groups - 1)), std::move(whole),
                                std::move(partial)}});
      return;
    }
    const int64_t tall = rows_.height + 1;
    emit_tiles(block, rows_.tall_tiles, tall, 0, 0);
    emit_tiles(block, rows_.short_tiles, rows_.height, rows_.tall_tiles * tall, rows_.tall_tiles);
  }

  void emit_tiles(Block& block, int64_t count, int64_t height, int64_t first_row,
                  int64_t first_tile) {
    if (count == 0) return;
    Var tile = kernel_.add_var({"tile", loop::VarKind::loop, DType::i64, 1, 0, count - 1});
    Block inside;
    emit_tile(inside, height, pool_.var(tile) * pool_.integer(height) + pool_.integer(first_row),
              pool_.var(tile) + pool_.integer(first_tile));
    block.push_back({For{tile, pool_.integer(0), pool_.integer(count), 1, LoopKind::serial,
                         std::move(inside)}});
  }

  // Row i of the tile as an index into the m dims.
  std::vector<Expr> row_index(Expr first_row, Expr i) {
    std::vector<Expr> index = outer_;
    if (rows_.group > 1) {
      index.push_back(group_ * pool_.integer(rows_.group) +
                      loop::floor_div(i, pool_.integer(rows_.inner)));
      index.push_back(loop::mod(i, pool_.integer(rows_.inner)));
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
    for (int64_t steps : steps_) {
      tile.k_vars.push_back(
          kernel_.add_var({"k", loop::VarKind::loop, DType::i64, 1, 0, steps - 1}));
    }
    tile.k_extents = steps_;
    tile.is_paired = spec_.is_paired;
    tile.shares_elements = spec_.rows_overlap;
    tile.has_last_apart = spec_.is_paired && spec_.k.back() % 2 != 0;
    tile.a = [&](Expr i, std::span<const Expr> k) {
      const std::vector<Expr> m = row_index(first_row, i);
      return spec_.is_paired ? pair(m, k) : spec_.a(batch_, m, k);
    };
    tile.b = [&](Expr j, std::span<const Expr> k) {
      if (spec_.b) return columns_in_place(k, first_column_ + j * pool_.integer(lanes_));
      Expr at = (panel_ * pool_.integer(layout_.depth) + depth_of(k)) *
                    pool_.integer(layout_.panel_width) +
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
    tile.roll_epilogue = count_operations({&result.value, 1}) > kRolledEpilogueOps;
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
    if (!spec_.b) {
      tile.prefetch = [&](Block& inside, std::span<const Expr> k) {
        emit_prefetch(inside, ordinal, k);
      };
    }
    emit_register_tile(kernel_, tile, block);
  }

  Var column_var() {
    return kernel_.add_var({"n", loop::VarKind::let, DType::i64, 1, 0, spec_.n - 1});
  }

  // Lanes that are columns from `column` on.
  loop::VectorAxis column_axis(Var column) {
    loop::VectorAxis axis{column, lanes_, {}};
    if (is_masked_)
      axis.mask = loop::lt(pool_.ramp(pool_.var(column), 1, lanes_),
                           loop::splat(pool_.integer(spec_.n), lanes_));
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
        at != nullptr && at->value + 1 == spec_.k.back()) {
      const Expr word = loop::cast(loop::bitcast(element, DType::i16), DType::i32);
      return loop::binary(loop::BinaryOp::bit_and, word, pool_.integer(0xffff, DType::i32));
    }
    const auto& load = std::get<loop::Load>(element->kind);
    return loop::bitcast(pool_.load(load.buffer, load.index, DType::bf16, 2), DType::i32);
  }

  // Row-major position of a step in the reduction.
  Expr depth_of(std::span<const Expr> k) {
    Expr depth = k[0];
    for (size_t i = 1; i < k.size(); ++i) depth = depth * pool_.integer(steps_[i]) + k[i];
    return depth;
  }

  // The next panel, a share of it for each tile of rows that this panel still serves.
  void emit_prefetch(Block& block, Expr ordinal, std::span<const Expr> k) {
    const int64_t line = 64 / dtype_bytes(spec_.dtype);
    const int64_t tiles = units_per_chunk_ * rows_.tiles();
    const int64_t share =
        std::max<int64_t>(1, layout_.panel_width / tiles);  // elements per reduction step
    const int64_t lines = std::max<int64_t>(1, share * reduction_unroll(steps_.back()) / line);
    Expr tile = (unit_ - first_unit_) * pool_.integer(rows_.tiles()) + ordinal;
    Expr at = (panel_ + pool_.integer(1)) * pool_.integer(layout_.depth * layout_.panel_width) +
              (tile * pool_.integer(layout_.depth) + depth_of(k)) * pool_.integer(share);
    for (int64_t i = 0; i < lines; ++i) {
      block.push_back({loop::Prefetch{packed_, at + pool_.integer(i * line), 2}});
    }
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ContractionSpec& spec_;
  const PackedLayout& layout_;
  loop::BufferRef packed_;
  std::vector<int64_t> steps_;  // of the reduction, by dim
  int lanes_;
  RowTiling rows_;
  int64_t units_per_chunk_ = 1;
  int vectors_ = 1;  // of the panel at hand
  bool is_masked_ = false;
  Expr panel_, first_column_, unit_, first_unit_, group_;
  std::vector<Expr> batch_, outer_;
};

}  // namespace

std::vector<int64_t> steps_of(const ContractionSpec& spec) {
  std::vector<int64_t> steps = spec.k;
  if (spec.is_paired) steps.back() = ceil_div(steps.back(), 2);
  return steps;
}

PackedLayout packed_layout(const ContractionSpec& spec, const Target& target) {
  const int lanes = target.lanes(dtype_bytes(spec.dtype));
  const int64_t cached_rows = rows_in_cache(spec.row_bytes, target);
  PackedLayout best;
  double best_cycles = 0;
  const double beside = spec.b ? kStepInPlace : 0;
  for (const RegisterTile& tile : tiles_of(spec, target)) {
    const int64_t width = static_cast<int64_t>(tile.vectors) * lanes;
    const int64_t panels = ceil_div(spec.n, width), vectors = ceil_div(spec.n, lanes);
    const int64_t left = vectors - (panels - 1) * tile.vectors;
    const bool is_narrower = panels == 1 || spec.b || (tile.vectors - left) * kNarrowest > vectors;
    const int last_vectors = is_narrower ? static_cast<int>(left) : tile.vectors;
    const RowTiling rows = tile_rows(spec.m, tile.rows);
    const bool is_thrashing = rows.height > cached_rows;
    const auto panel_cycles = [&](int count) {
      return static_cast<double>(rows.tall_tiles) * (step_cycles(rows.height + 1, count) + beside) +
             static_cast<double>(rows.short_tiles) * (step_cycles(rows.height, count) + beside);
    };
    const double cycles =
        (is_thrashing ? kThrashing : 1.0) * static_cast<double>(rows.units()) *
        (static_cast<double>(panels - 1) * panel_cycles(tile.vectors) + panel_cycles(last_vectors));
    if (best.panels == 0 || cycles < best_cycles * 0.98) {
      best.tile = tile;
      best.panels = panels;
      best.last_vectors = last_vectors;
      best.panel_width = width;
      best_cycles = cycles;
    }
  }
  best.depth = product(steps_of(spec));
  best.batches = product(spec.batch);
  return best;
}

bool is_read_in_place(const ContractionSpec& spec, int64_t step_bytes, const Target& target) {
  const bool is_whole = spec.n % target.lanes(dtype_bytes(spec.dtype)) == 0;
  if (spec.is_paired || (!is_whole && !target.has_masked_memory)) return false;
  const RegisterTile tile = packed_layout(spec, target).tile;
  const RowTiling rows = tile_rows(spec.m, tile.rows);
  // Lines that the next tile finds evicted come sooner where several lie side by side.
  const bool is_evicted = rows_in_cache(step_bytes, target) < kFewInCache;
  const int64_t lines = tile.vectors * target.vector_bytes / target.line_bytes;
  return rows.units() * rows.tiles() <= (is_evicted ? std::max<int64_t>(1, lines) : kFewTiles);
}

void build_contraction(loop::Kernel& kernel, const ContractionSpec& spec,
                       const PackedLayout& layout, loop::BufferRef packed, const Target& target) {
  Contraction(kernel, spec, layout, packed, target).build();
}

}  // namespace lathe
