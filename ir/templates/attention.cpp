// The attention template: see attention.h.
#include "ir/templates/attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/reduction.h"
#include "ir/templates/register_tile.h"
#include "ir/templates/row_tiling.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::Let;
using loop::LoopKind;
using loop::SetReg;
using loop::Var;

constexpr int64_t kPanelVectors = 2;
constexpr int64_t kFewQueries = 3;
constexpr int64_t kMinAttentionTasks = 8;
constexpr int64_t kMostUnrolledPanels = 32;  // of values

class Attention {
 public:
  Attention(loop::Kernel& kernel, const AttentionSpec& spec, const Target& target)
      : kernel_(kernel),
        pool_(*kernel.pool),
        spec_(spec),
        lanes_(target.lanes(dtype_bytes(spec.dtype))),
        row_lanes_(target.row_lanes(dtype_bytes(spec.dtype))) {
    for (const RegisterTile& tile : target.gemm_tiles) {
      if (tile.vectors == kPanelVectors) max_rows_ = std::max<int64_t>(max_rows_, tile.rows);
    }
    panel_width_ = kPanelVectors * lanes_;
    panels_ = ceil_div(spec.keys, panel_width_);
    // One vector more: rows then differ in their L1 sets.
    row_stride_ = panels_ * Dim(panel_width_) + Dim(lanes_);
  }

  void build() {
    const DimRange queries = spec_.queries.bounds(kernel_.symbols);
    may_be_by_rows_ = queries.min.value_or(0) <= kFewQueries && spec_.depth > 0;
    may_be_by_tiles_ = queries.max.value_or(INT64_MAX) > kFewQueries || spec_.depth == 0;
    if (may_be_by_tiles_)
      transposed_ = scratch("keys_transposed", panels_ * Dim(spec_.depth * panel_width_));
    scores_ = scratch("scores", Dim(max_rows_) * row_stride_);
    inverse_ = scratch("inverse_sum", max_rows_);
    skips_keys_ = may_skip_keys();

    Dim heads = 1;
    for (const Dim& extent : spec_.batch) heads = heads * extent;
    const Dim tiles = ceil_div(spec_.queries, max_rows_);
    Dim chunks = ceil_div(Dim(kMinAttentionTasks), heads);
    if (chunks != Dim(1)) chunks = Dim::max(1, Dim::min(chunks, tiles));
    const Dim tiles_per_chunk = ceil_div(tiles, chunks);
    const Dim tasks = heads * chunks;

    Block body;
    const Var task = loop_var("task", tasks);
    const Expr chunk = let(body, "chunk", loop::mod(pool_.var(task), pool_.size(chunks)), chunks);
    Expr head = loop::floor_div(pool_.var(task), pool_.size(chunks));
    batch_.resize(spec_.batch.size());
    for (size_t i = spec_.batch.size(); i-- > 0;) {
      Expr extent = pool_.size(spec_.batch[i]);
      batch_[i] = let(body, "head", i == 0 ? head : loop::mod(head, extent), spec_.batch[i]);
      head = loop::floor_div(head, extent);
    }
    const Expr first = chunk * pool_.size(tiles_per_chunk);
    if (spec_.queries.is_const())
      emit_balanced(body, first, tiles_per_chunk);
    else
      emit_ladder(body, first, tiles_per_chunk);
    kernel_.body.push_back(
        {For{task, pool_.integer(0), pool_.size(tasks), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  loop::BufferRef scratch(const char* name, const Dim& size) {
    return kernel_.add_buffer({name, spec_.dtype, size, loop::Space::scratch, true});
  }

  // In [0, extent).
  Expr let(Block& block, const char* name, Expr value, const Dim& extent) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    const Var var = let_var(name, extent);
    block.push_back({Let{var, value}});
    return pool_.var(var);
  }

  Var let_var(const char* name, const Dim& extent) {
    const Var var = kernel_.add_loop_var(name, extent);
    kernel_.vars[var.id].kind = loop::VarKind::let;
    return var;
  }

  Var loop_var(const char* name, const Dim& extent) { return kernel_.add_loop_var(name, extent); }

  Block loop(Var var, const Dim& extent, int64_t step, LoopKind kind, Block inside) {
    Block block;
    block.push_back(
        {For{var, pool_.integer(0), pool_.size(extent), step, kind, std::move(inside)}});
    return block;
  }
  Block loop(Var var, Expr extent, LoopKind kind, Block inside) {
    Block block;
    block.push_back({For{var, pool_.integer(0), extent, 1, kind, std::move(inside)}});
    return block;
  }

  // Every panel is seen by some query of a chunk, but not by each tile.
  bool may_skip_keys() const {
    const DimRange more = (spec_.keys - spec_.queries).bounds(kernel_.symbols);
    return spec_.is_causal && may_be_by_tiles_ && more.min.value_or(-1) >= 0 &&
           panel_width_ % row_lanes_ == 0;
  }

  // The chunk's tiles, from tile `first` on, of a number of queries: the first `tall` of them have
  // one row more than the others.
  void emit_balanced(Block& block, Expr first, const Dim& tiles_per_chunk) {
    if (may_be_by_tiles_) emit_transpose(block);
    const int64_t tiles = ceil_div(spec_.queries, max_rows_).value();
    const int64_t height = spec_.queries.value() / tiles;
    const int64_t tall = spec_.queries.value() - height * tiles;
    Expr last = loop::min(first + pool_.size(tiles_per_chunk), pool_.integer(tiles));
    emit_tiles(block, height + 1, 0, first, loop::min(last, pool_.integer(tall)), tall > 0);
    emit_tiles(block, height, tall, loop::max(first, pool_.integer(tall)), last, height > 0);
  }

  // Of a size of queries: one loop of tiles, in which only products are code of each height's own.
  void emit_ladder(Block& block, Expr first, const Dim& tiles_per_chunk) {
    if (may_be_by_rows_ && may_be_by_tiles_)
      is_few_ = loop::le(pool_.size(spec_.queries), pool_.integer(kFewQueries));
    if (may_be_by_tiles_) unless_few(block, [&](Block& many) { emit_transpose(many); });
    const Expr first_row = let(block, "first_query", first * pool_.integer(max_rows_),
                               tiles_per_chunk * Dim(max_rows_ * kMinAttentionTasks));
    // The last chunks may have none.
    const Expr left = loop::max(pool_.size(spec_.queries) - first_row, pool_.integer(0));
    const Expr rows =
        let(block, "queries", loop::min(pool_.size(tiles_per_chunk * Dim(max_rows_)), left),
            spec_.queries + Dim(1));
    const DimRange at_most{{}, spec_.queries.bounds(kernel_.symbols).max};  // of a chunk
    const int64_t highest = may_be_by_tiles_ ? max_rows_ : kFewQueries;
    const std::vector<Rung> rungs =
        climb(kernel_, block, few_heights(highest, kPanelVectors, at_most), rows, spec_.queries);
    const Expr tiles = rungs.back().first_tile + rungs.back().count;
    const Var tile = loop_var("tile", spec_.queries);
    Expr height = pool_.integer(rungs.front().height);
    Expr row = pool_.var(tile) * height;
    for (const Rung& rung : std::span(rungs).subspan(1)) {
      const Expr is_reached = loop::le(rung.first_tile, pool_.var(tile));
      const Expr nth = pool_.var(tile) - rung.first_tile;
      row = loop::select(is_reached, nth * pool_.integer(rung.height) + rung.first_row, row);
      height = loop::select(is_reached, pool_.integer(rung.height), height);
    }
    Block inside;
    TileRows of_tile;
    for (const Rung& rung : rungs) of_tile.heights.push_back(rung.height);
    of_tile.height = let(inside, "height", height, rungs.front().height + 1);
    of_tile.first = let(inside, "query", row + first_row, spec_.queries);
    emit_tile(inside, of_tile);
    block.push_back({For{tile, pool_.integer(0), tiles, 1, LoopKind::serial, std::move(inside)}});
  }

  // Where there may be few queries, only if there are more.
  void unless_few(Block& block, const std::function<void(Block&)>& fill) {
    if (!is_few_) return fill(block);
    Block many;
    fill(many);
    block.push_back({loop::If{is_few_, {}, std::move(many)}});
  }

  static void append(Block& block, Block more) {
    for (loop::Stmt& stmt : more) block.push_back(std::move(stmt));
  }

  // keys_transposed[panel][d][lane] = key(panel * width + lane, d); lanes beyond the keys repeat
  // the last.
  void emit_transpose(Block& block) {
    Var panel = loop_var("panel", panels_), d = loop_var("d", spec_.depth),
        j = loop_var("j", kPanelVectors);
    const Var t = let_var("t", panels_ * Dim(panel_width_));
    Expr clamped =
        are_panels_full() ? pool_.var(t) : loop::min(pool_.var(t), pool_.size(spec_.keys - Dim(1)));
    Expr column = loop::vectorize(spec_.key(batch_, clamped, pool_.var(d)), {t, lanes_, {}});
    Expr at = pool_.var(panel) * pool_.integer(panel_width_) + pool_.var(j) * pool_.integer(lanes_);
    Expr index = (pool_.var(panel) * pool_.integer(spec_.depth) + pool_.var(d)) *
                     pool_.integer(panel_width_) +
                 pool_.var(j) * pool_.integer(lanes_);
    Block inside;
    inside.push_back({loop::Store{transposed_, index, loop::substitute(column, t, at), {}, false}});
    inside = loop(j, kPanelVectors, 1, LoopKind::unroll, std::move(inside));
    inside = loop(d, spec_.depth, 1, LoopKind::serial, std::move(inside));
    append(block, loop(panel, panels_, 1, LoopKind::serial, std::move(inside)));
  }

  // Tiles first..last of `height` rows; rows before them number `tall_before` more than the height
  // says.
  void emit_tiles(Block& block, int64_t height, int64_t tall_before, Expr first, Expr last,
                  bool exists) {
    if (!exists) return;
    Var tile = loop_var("tile", ceil_div(spec_.queries, max_rows_));
    Block inside;
    Expr row0 =
        let(inside, "query", pool_.var(tile) * pool_.integer(height) + pool_.integer(tall_before),
            spec_.queries);
    emit_tile(inside, {row0, pool_.integer(height), {height}});
    block.push_back({For{tile, first, last, 1, LoopKind::serial, std::move(inside)}});
  }

  // The queries of a tile: `height` of them, which is one of `heights`.
  struct TileRows {
    Expr first, height;
    std::vector<int64_t> heights;  // falling
  };

  void emit_tile(Block& inside, const TileRows& rows) {
    if (skips_keys_) {
      const Expr last_row = rows.first + (rows.height - pool_.integer(1));
      seen_ = let(inside, "seen", loop::floor_div(last_row, pool_.integer(panel_width_)) + 1.0,
                  panels_ + Dim(1));
    }
    Block few, many;
    if (may_be_by_rows_) emit_scores_by_rows(few, rows);
    if (may_be_by_tiles_)
      by_height(many, rows,
                [&](Block& block, int64_t height) { emit_scores(block, height, rows.first); });
    if (is_few_)
      inside.push_back({loop::If{is_few_, std::move(few), std::move(many)}});
    else
      append(inside, may_be_by_tiles_ ? std::move(many) : std::move(few));
    emit_softmax(inside, rows);
    by_height(inside, rows, [&](Block& block, int64_t height) {
      emit_values(block, height, rows.first, rows.heights.size() > 1);
    });
  }

  // What has a height's own code, by the heights that there are.
  void by_height(Block& block, const TileRows& rows,
                 const std::function<void(Block&, int64_t)>& fill) {
    Block lower;
    for (size_t i = rows.heights.size(); i-- > 0;) {
      Block here;
      fill(here, rows.heights[i]);
      if (i + 1 < rows.heights.size()) {
        const Expr is_here = loop::eq(rows.height, pool_.integer(rows.heights[i]));
        Block both;
        both.push_back({loop::If{is_here, std::move(here), std::move(lower)}});
        lower = std::move(both);
      } else {
        lower = std::move(here);
      }
    }
    append(block, std::move(lower));
  }

  bool are_panels_full() const { return panels_ * Dim(panel_width_) == spec_.keys; }

  void emit_scores(Block& block, int64_t height, Expr row0) {
    Var panel = loop_var("panel", panels_);
    RegisterTileSpec tile;
    tile.rows = height;
    tile.vectors = kPanelVectors;
    tile.lanes = lanes_;
    tile.dtype = spec_.dtype;
    tile.k_vars = {loop_var("d", spec_.depth)};
    tile.k_extents = {spec_.depth};
    tile.a = [&](Expr i, std::span<const Expr> k) { return spec_.query(batch_, row0 + i, k[0]); };
    tile.b = [&](Expr j, std::span<const Expr> k) {
      Expr at =
          (pool_.var(panel) * pool_.integer(spec_.depth) + k[0]) * pool_.integer(panel_width_) +
          j * pool_.integer(lanes_);
      return pool_.load(transposed_, at, spec_.dtype, lanes_);
    };
    const Var t = let_var("t", panels_ * Dim(panel_width_));
    Var row = loop_var("i", height);
    Var sum_var =
        kernel_.add_var({"sum", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    Expr sum_read = pool_.var(sum_var, spec_.dtype);
    // One after the other: the order of expressions in the pool is that in which they are made.
    const Expr query = row0 + pool_.var(row);
    const Expr score = masked(sum_read, query, pool_.var(t));
    loop::VectorAxis axis{t, lanes_, {}};
    if (!are_panels_full()) {
      axis.mask = loop::lt(pool_.ramp(pool_.var(t), 1, lanes_),
                           loop::splat(pool_.size(spec_.keys), lanes_));
    }
    tile.epilogue = [&](Block& inside, Expr i, Expr j, Expr sum) {
      Expr at = pool_.var(panel) * pool_.integer(panel_width_) + j * pool_.integer(lanes_);
      Expr value = loop::vectorize(score, axis, {{sum_read.node(), sum}});
      value = loop::substitute(loop::substitute(value, t, at), row, i);
      inside.push_back({loop::Store{scores_, i * pool_.size(row_stride_) + at, value, {}, false}});
    };
    Block inside;
    emit_register_tile(kernel_, tile, inside);
    const Expr end = skips_keys_ ? seen_ : pool_.size(panels_);
    block.push_back({For{panel, pool_.integer(0), end, 1, LoopKind::serial, std::move(inside)}});
  }

  // The score of query i and key t, from the sum of their products.
  Expr masked(Expr sum, Expr i, Expr t) {
    Expr score = sum * spec_.scale;
    if (spec_.mask) score = spec_.mask(batch_, i, t, score);
    return spec_.is_causal ? loop::select(loop::le(t, i), score, minus_infinity()) : score;
  }

  // Few queries: every key is read once for each, as it lies; to turn all keys would take longer.
  void emit_scores_by_rows(Block& block, const TileRows& rows) {
    const Var i = loop_var("i", rows.heights.front()), t = loop_var("t", spec_.keys),
              d = loop_var("d", spec_.depth);
    const Expr row = rows.first + pool_.var(i);
    const Expr query = spec_.query(batch_, row, pool_.var(d));
    const Expr key = spec_.key(batch_, pool_.var(t), pool_.var(d));
    Block inside;
    ReductionEmitter reductions(kernel_, row_lanes_);
    const Expr sum = reductions.lower(
        loop::reduce(loop::ReduceOp::sum, {d}, {pool_.integer(spec_.depth)}, query * key), inside);
    inside.push_back({loop::Store{scores_,
                                  pool_.var(i) * pool_.size(row_stride_) + pool_.var(t),
                                  masked(sum, row, pool_.var(t)),
                                  {},
                                  false}});
    inside = loop(t, spec_.keys, 1, LoopKind::serial, std::move(inside));
    if (skips_keys_) fill_last_panel(inside, pool_.var(i));
    append(block, loop(i, rows.height, LoopKind::serial, std::move(inside)));
  }

  // Row i's scores behind the keys.
  void fill_last_panel(Block& block, Expr i) {
    const Var t = loop_var("t", panels_ * Dim(panel_width_));
    Block inside;
    inside.push_back({loop::Store{
        scores_, i * pool_.size(row_stride_) + pool_.var(t), minus_infinity(), {}, false}});
    block.push_back({For{t, pool_.size(spec_.keys), pool_.size(panels_ * Dim(panel_width_)), 1,
                         LoopKind::serial, std::move(inside)}});
  }

  Expr minus_infinity() {
    return pool_.number(-std::numeric_limits<double>::infinity(), spec_.dtype);
  }

  using Score = std::function<Expr(Expr t)>;  // of the row at hand

  Expr largest_of_all(const Score& score, Block& row) {
    const Var t = loop_var("t", spec_.keys);
    return ReductionEmitter(kernel_, row_lanes_)
        .lower(
            loop::reduce(loop::ReduceOp::max, {t}, {pool_.size(spec_.keys)}, score(pool_.var(t))),
            row);
  }

  Expr largest_seen(const Score& score, Block& row) {
    const Var t = loop_var("t", panels_ * Dim(panel_width_));
    const Accumulator best =
        start_accumulator(kernel_, {loop::ReduceOp::max, spec_.dtype, row_lanes_}, row);
    const Expr zero = pool_.integer(0);
    Block step;
    step.push_back(combine_into(kernel_, best, zero,
                                loop::vectorize(score(pool_.var(t)), {t, row_lanes_, {}})));
    row.push_back({For{t, zero, seen_ * pool_.integer(panel_width_), row_lanes_, LoopKind::serial,
                       std::move(step)}});
    return loop::reduce_lanes(loop::ReduceOp::max, read(kernel_, best, zero));
  }

  // Each row of scores becomes exp(score - max); the inverse of its sum is kept for the end.
  void emit_softmax(Block& block, const TileRows& rows) {
    Var i = loop_var("i", rows.heights.front()), step = loop_var("t", panels_ * Dim(panel_width_));
    Block row;
    auto score = [&](Expr at) {
      return pool_.load(scores_, pool_.var(i) * pool_.size(row_stride_) + at, spec_.dtype);
    };
    Expr largest = skips_keys_ ? largest_seen(score, row) : largest_of_all(score, row);
    largest =
        loop::select(loop::eq(largest, minus_infinity()), loop::constant_like(largest, 0), largest);

    loop::RegArray total = kernel_.add_regs({"total", spec_.dtype, row_lanes_, {}});
    Expr total_read = pool_.reg(total, {}, spec_.dtype, row_lanes_);
    row.push_back({loop::DeclareRegs{total}});
    row.push_back({SetReg{total, {}, loop::splat(pool_.number(0, spec_.dtype), row_lanes_)}});
    Expr probability = loop::exp(score(pool_.var(step)) - largest);
    Expr index = pool_.var(i) * pool_.size(row_stride_) + pool_.var(step);
    // Behind the keys that are seen, scores are -inf up to the end of the panel.
    const Dim whole =
        skips_keys_ ? spec_.keys : Dim::floor_div(spec_.keys, row_lanes_) * Dim(row_lanes_);
    auto emit = [&](Block& inside, Var at, Expr mask) {
      loop::RegArray p = kernel_.add_regs({"p", spec_.dtype, row_lanes_, {}});
      Expr value = loop::vectorize(loop::substitute(probability, step, pool_.var(at)),
                                   {at, row_lanes_, mask});
      Expr read = pool_.reg(p, {}, spec_.dtype, row_lanes_);
      inside.push_back({loop::DeclareRegs{p}});
      inside.push_back({SetReg{p, {}, value}});
      Expr sum = mask ? loop::select(mask, total_read + read, total_read) : total_read + read;
      inside.push_back({SetReg{total, {}, sum}});
      inside.push_back(
          {loop::Store{scores_, loop::substitute(index, step, pool_.var(at)), read, mask, false}});
    };
    if (whole != Dim(0)) {
      Block inside;
      emit(inside, step, {});
      const Expr end = skips_keys_ ? seen_ * pool_.integer(panel_width_) : pool_.size(whole);
      row.push_back(
          {For{step, pool_.integer(0), end, row_lanes_, LoopKind::serial, std::move(inside)}});
    }
    if (whole != spec_.keys) {
      const Var tail = let_var("t_tail", spec_.keys + Dim(spec_.keys.is_const() ? 0 : 1));
      row.push_back({Let{tail, pool_.size(whole)}});
      emit(row, tail,
           loop::lt(pool_.ramp(pool_.integer(0), 1, row_lanes_),
                    loop::splat(pool_.size(spec_.keys - whole), row_lanes_)));
    }
    Expr sum = loop::reduce_lanes(loop::ReduceOp::sum, total_read);
    Expr inverse = loop::select(loop::eq(sum, loop::constant_like(sum, 0)),
                                loop::constant_like(sum, 0), 1.0 / sum);
    row.push_back({loop::Store{inverse_, pool_.var(i), inverse, {}, false}});
    append(block, loop(i, rows.height, LoopKind::serial, std::move(row)));
  }

  void emit_values(Block& block, int64_t height, Expr row0, bool is_rolled) {
    const int64_t vectors = (spec_.width + lanes_ - 1) / lanes_;
    const int64_t whole = spec_.width / (kPanelVectors * lanes_);
    int64_t first = 0;
    if (whole > (is_rolled ? 1 : kMostUnrolledPanels)) {
      const Var panel = loop_var("panel", whole);
      Block inside;
      emit_value_panel(inside, height, row0, pool_.var(panel) * pool_.integer(kPanelVectors),
                       kPanelVectors, false);
      append(block, loop(panel, whole, 1, LoopKind::serial, std::move(inside)));
      first = whole * kPanelVectors;
    }
    for (; first < vectors; first += kPanelVectors) {
      const int64_t count = std::min(kPanelVectors, vectors - first);
      emit_value_panel(block, height, row0, pool_.integer(first), count,
                       (first + count) * lanes_ > spec_.width);
    }
  }

  // `count` vectors of the result's columns, from vector `first` on.
  void emit_value_panel(Block& block, int64_t height, Expr row0, Expr first, int64_t count,
                        bool is_masked) {
    Var e = kernel_.add_var({"e", loop::VarKind::let, DType::i64, 1, 0, spec_.width - 1});
    Var row = loop_var("i", height);
    Var sum_var =
        kernel_.add_var({"sum", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    Expr sum_read = pool_.var(sum_var, spec_.dtype);
    const ResultElement result =
        spec_.result(batch_, row0 + pool_.var(row), pool_.var(e), sum_read);
    loop::VectorAxis axis{e, lanes_, {}};
    if (is_masked) {
      axis.mask = loop::lt(pool_.ramp(pool_.var(e), 1, lanes_),
                           loop::splat(pool_.integer(spec_.width), lanes_));
    }
    auto column = [&](Expr j) { return (j + first) * pool_.integer(lanes_); };
    RegisterTileSpec tile;
    tile.rows = height;
    tile.vectors = count;
    tile.lanes = lanes_;
    tile.dtype = spec_.dtype;
    tile.k_vars = {loop_var("t", spec_.keys)};
    tile.k_extents = {spec_.keys};
    if (skips_keys_)
      tile.k_end = loop::min(seen_ * pool_.integer(panel_width_), pool_.size(spec_.keys));
    tile.a = [&](Expr i, std::span<const Expr> k) {
      return pool_.load(scores_, i * pool_.size(row_stride_) + k[0], spec_.dtype);
    };
    tile.b = [&](Expr j, std::span<const Expr> k) {
      Expr vector = loop::vectorize(spec_.value(batch_, k[0], pool_.var(e)), axis);
      return loop::substitute(vector, e, column(j));
    };
    tile.epilogue = [&](Block& inside, Expr i, Expr j, Expr sum) {
      Expr scaled = sum * loop::splat(pool_.load(inverse_, i, spec_.dtype), lanes_);
      auto place = [&](Expr x) {
        return loop::substitute(loop::substitute(x, e, column(j)), row, i);
      };
      Expr value = place(loop::vectorize(result.value, axis, {{sum_read.node(), scaled}}));
      inside.push_back({loop::Store{result.buffer, place(result.index), value,
                                    axis.mask ? place(axis.mask) : Expr{}, false}});
    };
    emit_register_tile(kernel_, tile, block);
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const AttentionSpec& spec_;
  int lanes_;
  int row_lanes_;                // of the softmax, which sums
  bool may_be_by_rows_ = false;  // of the keys, which are then not transposed
  bool may_be_by_tiles_ = false;
  Expr is_few_;              // of which is decided at run time: if it is by rows
  bool skips_keys_ = false;  // in panels that no query of a tile sees
  Expr seen_;                // panels that one does
  int64_t max_rows_ = 1, panel_width_ = 0;
  Dim panels_ = 0, row_stride_ = 0;
  loop::BufferRef transposed_, scores_, inverse_;
  std::vector<Expr> batch_;
};

}  // namespace

void build_attention(loop::Kernel& kernel, const AttentionSpec& spec, const Target& target) {
  Attention(kernel, spec, target).build();
}

}  // namespace lathe
