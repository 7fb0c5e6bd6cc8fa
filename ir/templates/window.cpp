// The window template: see window.h.
#include "ir/templates/window.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/row_tiling.h"
#include "ir/templates/window_rows.h"
#include "ir/templates/window_threads.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kMinWindowTasks = 16;     // enough for a few threads to share evenly
constexpr int64_t kTaskVectors = 4000;      // vectors read and combined in about 10 us of a task
constexpr int64_t kMostUnrolledTaps = 8;    // of the last dim
constexpr int64_t kMostResults = 14;        // of a row that share weights
constexpr int64_t kMostEdgeTiles = 4;       // with code of their own
constexpr int64_t kSpareRegisters = 3;      // the element, and two for addresses and masks
constexpr int64_t kEdgeVectors = 4;         // chains that a lone result of a row runs side by side
constexpr int64_t kRolledEpilogueOps = 10;  // beyond a bias, a residual and a clamp

// Whether a group's lanes are a vector or half of one, so that an element for each is read as often
// as there are groups. Members of others are lanes of one element.
bool is_wide(const WindowSpec& spec, const Target& target) {
  return spec.group > 1 && spec.group * 2 >= target.lanes(dtype_bytes(spec.dtype));
}

// Whether the members of a group have a loop. Not where sums are the same bits on every target: in
// a loop they would be added in another order than lanes of one element are.
bool takes_turns(const WindowSpec& spec, const Target& target) {
  return is_wide(spec, target) && target.sum_lanes == 0;
}

// Few taps of the last dim keep their weights in registers, beside one element and the results that
// it goes to; more are read for every result, which several vectors then share.
RegisterTile window_tile(const WindowSpec& spec, const Target& target) {
  const int64_t taps = spec.dims.back().taps;
  if (taps > kMostUnrolledTaps) return target.gemm_tiles.front();
  const bool is_kept = spec.group == 1 || takes_turns(spec, target);
  const int64_t kept = spec.is_weighted && is_kept ? taps : 0;
  const int64_t room = target.num_vector_registers - kept - kSpareRegisters;
  return {static_cast<int>(std::clamp<int64_t>(room, 1, kMostResults)), 1};
}

class WindowReduction : WindowRows {
 public:
  WindowReduction(loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed,
                  const Target& target)
      : WindowRows(kernel, spec),
        packed_(packed),
        packed_channels_(packed_channels(spec, target)),
        tile_(window_tile(spec, target)),
        lanes_(target.lanes(dtype_bytes(spec.dtype))),
        vectors_(spec.channels / lanes_),
        is_wide_(is_wide(spec, target)),
        takes_turns_(takes_turns(spec, target)) {}

  void build() {
    const Dim rows = num_rows();
    const int64_t some_rows = usual(rows);
    int64_t taps = 1;
    for (const WindowDim& dim : spec_.dims) taps *= dim.taps;
    taps *= spec_.group;
    const int64_t per_vector = std::max<int64_t>(1, usual(last_.output) * taps);
    chunk_ = std::max<int64_t>(1, vectors_);
    if (some_rows < kMinWindowTasks) {
      const int64_t least = std::max(ceil_div(kTaskVectors, per_vector), kEdgeVectors);
      chunk_ = std::max(least, ceil_div(vectors_ * some_rows, kMinWindowTasks));
      chunk_ = ceil_div(chunk_, kEdgeVectors) * kEdgeVectors;
    }
    chunks_ = std::max<int64_t>(1, ceil_div(vectors_, chunk_));
    Block body;
    const Dim tasks = rows * Dim(chunks_);
    const Var task = kernel_.add_loop_var("task", tasks);
    Expr rest = pool_.var(task);
    first_vector_ = pool_.integer(0);
    end_vector_ = pool_.integer(vectors_);
    if (chunks_ > 1) {
      chunk_index_ = let(body, "chunk", loop::mod(rest, pool_.integer(chunks_)), 0, chunks_ - 1);
      rest = let_below(body, "row", loop::floor_div(rest, pool_.integer(chunks_)), rows);
      first_vector_ = let(body, "first", chunk_index_ * pool_.integer(chunk_), 0, vectors_);
      end_vector_ = loop::min(first_vector_ + pool_.integer(chunk_), end_vector_);
    }
    decode_row(body, rest);
    emit_row(body);
    const int64_t per_task = per_vector * std::min(chunk_, std::max<int64_t>(1, vectors_));
    kernel_.grain = std::max<int64_t>(1, kTaskVectors / per_task);
    kernel_.body.push_back(
        {For{task, pool_.integer(0), pool_.size(tasks), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  int64_t usual(const Dim& size) const {
    return size.is_const() ? size.value() : size_at(size, spec_.hints);
  }

  void emit_row(Block& block) {
    const bool is_sized = !last_.input.is_const() || !last_.output.is_const();
    if (is_sized || last_.taps > kMostUnrolledTaps || !emit_whole_row(block))
      emit_row_and_edges(block);
  }

  // Balanced tiles of the whole row. Those at its edges stand at constants, so that what they would
  // read outside is left out; false when these would be many.
  bool emit_whole_row(Block& block) {
    const auto [first_inside, end_inside] = results_inside(last_, kernel_.symbols);
    const int64_t first = first_inside.value(), end = end_inside.value();
    const int64_t output = last_.output.value();
    const int64_t tiles = ceil_div(output, tile_.rows), height = output / tiles;
    const int64_t tall = output - height * tiles;
    const auto begin_of = [&](int64_t t) { return t * height + std::min(t, tall); };
    int64_t head = 0, tail = tiles;  // tiles [head, tail) lie inside
    while (head < tiles && begin_of(head) < first) ++head;
    while (tail > head && begin_of(tail) > end) --tail;
    if (head + tiles - tail > kMostEdgeTiles) return false;
    const auto emit_edges = [&](int64_t from, int64_t to) {
      for (int64_t t = from; t < to; ++t)
        emit_channels(block, {begin_of(t + 1) - begin_of(t), tile_.vectors,
                              pool_.integer(begin_of(t)), all_taps()});
    };
    const int64_t middle = std::clamp(tall, head, tail);
    emit_edges(0, head);
    emit_tiles(block, begin_of(head), middle - head, height + 1);
    emit_tiles(block, begin_of(middle), tail - middle, height);
    emit_edges(tail, tiles);
    return true;
  }

  Taps all_taps() { return {pool_.integer(0), pool_.integer(last_.taps)}; }

  // The results whose windows lie inside in tiles, then those at the edges one by one.
  void emit_row_and_edges(Block& block) {
    const auto [first, end] = results_inside(last_, kernel_.symbols);
    const Dim count = end - first;
    if (count.is_const() && first.is_const())
      emit_balanced(block, first.value(), count.value());
    else
      emit_ladder(block, first, count);
    const Dim edges = last_.output - count;
    if (edges == Dim(0)) return;
    const Var edge = kernel_.add_loop_var("edge", edges);
    Block body;
    Expr at = pool_.var(edge);
    const bool is_before = (edges - first).bounds(kernel_.symbols).max.value_or(1) <= 0;
    if (!is_before) at = loop::select(loop::lt(at, pool_.size(first)), at, at + pool_.size(count));
    at = let_below(body, "at", at, last_.output);
    const Expr start = let_start(body, last_, at);
    emit_channels(body, {1, kEdgeVectors, at, taps_inside(body, last_, start)});
    block.push_back(
        {For{edge, pool_.integer(0), pool_.size(edges), 1, LoopKind::serial, std::move(body)}});
  }

  void emit_balanced(Block& block, int64_t first, int64_t count) {
    if (count == 0) return;
    const int64_t tiles = ceil_div(count, tile_.rows), height = count / tiles;
    const int64_t tall = count - height * tiles;
    emit_tiles(block, first, tall, height + 1);
    emit_tiles(block, first + tall * (height + 1), tiles - tall, height);
  }

  void emit_ladder(Block& block, const Dim& first, const Dim& count) {
    RowLadder ladder{{tile_.rows}};
    for (int64_t height : {ceil_div(tile_.rows, 3), int64_t{2}, int64_t{1}})
      if (height < ladder.heights.back()) ladder.heights.push_back(height);
    for (const Rung& rung : climb(kernel_, block, ladder, pool_.size(count), count))
      emit_tiles(block, rung.first_row + pool_.size(first), rung);
  }

  void emit_tiles(Block& block, int64_t first, int64_t count, int64_t height) {
    if (count == 0) return;
    emit_tiles(block, pool_.integer(first), {height, pool_.integer(count), {}, {}, count});
  }

  void emit_tiles(Block& block, Expr first, const Rung& tiles) {
    const Var tile = kernel_.add_loop_var("tile", tiles.most);
    Block body;
    emit_channels(body, {tiles.height, tile_.vectors,
                         pool_.var(tile) * pool_.integer(tiles.height) + first, all_taps()});
    block.push_back(
        {For{tile, pool_.integer(0), tiles.count, 1, LoopKind::serial, std::move(body)}});
  }

  // `height` results of a row from `at` on, in `vectors` vectors of channels.
  struct Tile {
    int64_t height, vectors;
    Expr at;
    Taps taps;  // of the last dim
  };

  // Whole tiles of vectors, then single vectors, then what is left of the channels.
  void emit_channels(Block& block, Tile tile) {
    const int64_t tiled = vectors_ / tile.vectors * tile.vectors;
    const auto clip = [&](int64_t at, Expr bound, bool is_least) {
      if (chunks_ == 1) return pool_.integer(at);
      return is_least ? loop::max(bound, pool_.integer(at)) : loop::min(bound, pool_.integer(at));
    };
    if (tiled > 0) emit_vectors(block, tile, first_vector_, clip(tiled, end_vector_, false));
    const int64_t width = tile.vectors;
    tile.vectors = 1;
    if (vectors_ % width != 0)
      emit_vectors(block, tile, clip(tiled, first_vector_, true), end_vector_);
    const int64_t rest = spec_.channels - vectors_ * lanes_;
    if (rest == 0) return;
    const Expr mask =
        loop::lt(pool_.ramp(pool_.integer(0), 1, lanes_), loop::splat(pool_.integer(rest), lanes_));
    Block tail;
    emit_tile(tail, tile, pool_.integer(vectors_), mask);
    if (chunks_ > 1) {
      Block guarded;
      guarded.push_back(
          {loop::If{loop::eq(chunk_index_, pool_.integer(chunks_ - 1)), std::move(tail), {}}});
      tail = std::move(guarded);
    }
    for (loop::Stmt& stmt : tail) block.push_back(std::move(stmt));
  }

  void emit_vectors(Block& block, const Tile& tile, Expr first, Expr end) {
    const Var vector = add_var("vector", vectors_);
    Block body;
    emit_tile(body, tile, pool_.var(vector), {});
    block.push_back({For{vector, first, end, tile.vectors, LoopKind::serial, std::move(body)}});
  }

  template <class F>
  void unroll(Block& block, const char* name, int64_t extent, F&& fill,
              LoopKind kind = LoopKind::unroll) {
    const Var var = add_var(name, extent);
    Block body;
    fill(body, pool_.var(var));
    block.push_back({For{var, pool_.integer(0), pool_.integer(extent), 1, kind, std::move(body)}});
  }

  void emit_tile(Block& block, const Tile& tile, Expr vector, Expr mask) {
    const auto regs = [&](const char* name, std::vector<int64_t> shape) {
      const loop::RegArray array = kernel_.add_regs({name, spec_.dtype, lanes_, std::move(shape)});
      block.push_back({loop::DeclareRegs{array}});
      return array;
    };
    sums_ = regs("acc", {tile.height, tile.vectors});
    if (keeps_weights())
      weights_ = regs("w", {is_in_registers(tile) ? last_.taps : 1, tile.vectors});
    element_ = regs("x", {tile.vectors});
    if (spec_.group > 1 && !is_wide_) spread_ = regs("spread", {tile.vectors});
    const Expr start =
        loop::splat(pool_.number(loop::identity(spec_.op, spec_.dtype), spec_.dtype), lanes_);
    for_each_sum(block, tile, [&](Block& body, Expr i, Expr j) {
      body.push_back({loop::SetReg{sums_, {i, j}, start}});
    });
    emit_taps(block, tile, vector, mask, {});
    emit_results(block, tile, vector, mask);
  }

  template <class F>
  void for_each_sum(Block& block, const Tile& tile, F&& fill) {
    unroll(block, "i", tile.height, [&](Block& rows, Expr i) {
      unroll(rows, "j", tile.vectors, [&](Block& body, Expr j) { fill(body, i, j); });
    });
  }

  void emit_taps(Block& block, const Tile& tile, Expr vector, Expr mask, std::vector<Expr> taps) {
    const size_t level = taps.size();
    const bool is_last = level + 1 == spec_.dims.size();
    const WindowDim& dim = spec_.dims[level];
    const Taps range = is_last ? tile.taps : taps_[level];
    if (is_last && is_in_registers(tile)) {
      return for_each_turn(block, [&](Block& body, Expr turn) {
        emit_row_of_taps(body, tile, vector, mask, taps, turn);
      });
    }
    const Var tap = add_var("k", dim.taps);
    taps.push_back(pool_.var(tap));
    Block body;
    if (is_last) {
      for_each_turn(body, [&](Block& member, Expr turn) {
        emit_step(member, tile, vector, mask, taps, turn);
      });
    } else {
      emit_taps(body, tile, vector, mask, taps);
    }
    block.push_back({For{tap, range.first, range.end, 1, LoopKind::serial, std::move(body)}});
  }

  // Tiles whose windows lie inside, when the taps of the last dim are few.
  bool is_in_registers(const Tile& tile) const {
    return loop::as_int(tile.taps.first) && loop::as_int(tile.taps.end) &&
           last_.taps <= kMostUnrolledTaps;
  }

  // fill(body, member) for members that take turns; else once, with 0.
  template <class F>
  void for_each_turn(Block& block, F&& fill) {
    if (takes_turns_)
      unroll(block, "member", spec_.group, fill, LoopKind::serial);
    else
      fill(block, pool_.integer(0));
  }

  // All taps of the last dim: every element is read once and goes to all results that want it.
  void emit_row_of_taps(Block& block, const Tile& tile, Expr vector, Expr mask,
                        const std::vector<Expr>& taps, Expr turn) {
    if (keeps_weights()) {
      unroll(block, "k", last_.taps, [&](Block& rows, Expr k) {
        std::vector<Expr> all = taps;
        all.push_back(k);
        emit_weights(rows, tile, vector, all, k, turn);
      });
    }
    std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> readers;  // (result, tap)
    for (int64_t i = 0; i < tile.height; ++i)
      for (int64_t k = 0; k < last_.taps; ++k)
        readers[i * last_.stride + k * last_.dilation].emplace_back(i, k);
    const Expr start = tile.at * pool_.integer(last_.stride) - pool_.integer(last_.padding);
    const loop::IntConst* known = loop::as_int(start);
    for (const auto& reader : readers) {
      const int64_t offset = reader.first;
      const auto& uses = reader.second;
      if (known && !is_inside(known->value + offset)) continue;
      unroll(block, "j", tile.vectors, [&](Block& body, Expr j) {
        const Expr at = start + pool_.integer(offset);
        emit_element(body, taps, at, vector + j, j, mask, turn, [&](Expr value, Expr member) {
          for (const auto& [i, k] : uses) {
            const Expr tap = pool_.integer(k);
            emit_combine(body, value, pool_.integer(i), weight(taps, tap, tap, vector, member, j),
                         j);
          }
        });
      });
    }
  }

  // Whether a known place in the last dim is; of a size only tiles that lie inside know theirs.
  bool is_inside(int64_t at) const {
    return at >= 0 && !(last_.input.is_const() && at >= last_.input.value());
  }

  // Weights of all members are too many for registers: they are read as they are used.
  bool keeps_weights() const { return spec_.is_weighted && (spec_.group == 1 || takes_turns_); }

  // The weights' vector for a tap of the last dim; kept ones stand in the slot.
  Expr weight(std::vector<Expr> taps, Expr last, Expr slot, Expr vector, Expr member, Expr j) {
    if (!spec_.is_weighted) return {};
    if (keeps_weights()) return pool_.reg(weights_, {slot, j}, spec_.dtype, lanes_);
    taps.push_back(last);
    return pool_.load(packed_, packed_index(taps, member, vector + j), spec_.dtype, lanes_);
  }

  Expr packed_index(const std::vector<Expr>& taps, Expr member, Expr vector) {
    Expr row = taps[0];
    for (size_t i = 1; i < taps.size(); ++i)
      row = row * pool_.integer(spec_.dims[i].taps) + taps[i];
    row = row * pool_.integer(spec_.group) + member;
    return row * pool_.integer(packed_channels_) + vector * pool_.integer(lanes_);
  }

  // Reads the input for a vector of channels at `last` of the last dim, and calls
  // use(value, member) with what the member whose turn it is, or each, is for its group's lanes.
  template <class F>
  void emit_element(Block& body, const std::vector<Expr>& taps, Expr last, Expr vector, Expr j,
                    Expr mask, Expr turn, F&& use) {
    const Var channel = channel_var();
    const Expr x = input_at(taps, last, channel);
    const Expr element = pool_.reg(element_, {j}, spec_.dtype, lanes_);
    if (is_wide_) {
      for (int64_t i = 0; i < (takes_turns_ ? 1 : spec_.group); ++i) {
        const Expr member = takes_turns_ ? turn : pool_.integer(i);
        body.push_back({loop::SetReg{element_, {j}, member_of_groups(x, channel, vector, member)}});
        use(element, member);
      }
      return;
    }
    const Expr value = loop::vectorize(x, {channel, lanes_, mask});
    body.push_back({loop::SetReg{
        element_, {j}, loop::substitute(value, channel, vector * pool_.integer(lanes_))}});
    if (spec_.group == 1) return use(element, turn);
    for (int64_t member = 0; member < spec_.group; ++member) {
      std::vector<int> picked;
      for (int64_t lane = 0; lane < lanes_; ++lane)
        picked.push_back(static_cast<int>(lane / spec_.group * spec_.group + member));
      body.push_back(
          {loop::SetReg{spread_, {j}, loop::shuffle(element, element, std::move(picked))}});
      use(pool_.reg(spread_, {j}, spec_.dtype, lanes_), pool_.integer(member));
    }
  }

  // The member of the one or two groups that a vector's lanes are of; behind the channels anything.
  Expr member_of_groups(Expr x, Var channel, Expr vector, Expr member) {
    const auto of_group = [&](Expr group) {
      group = loop::min(group, pool_.integer(spec_.channels / spec_.group - 1));
      const Expr own = group * pool_.integer(spec_.group) + member;
      return loop::splat(loop::substitute(x, channel, own), lanes_);
    };
    const Expr first = loop::floor_div(vector * pool_.integer(lanes_), pool_.integer(spec_.group));
    if (spec_.group >= lanes_) return of_group(first);
    const Expr is_first = loop::lt(pool_.ramp(pool_.integer(0), 1, lanes_),
                                   loop::splat(pool_.integer(spec_.group), lanes_));
    return loop::select(is_first, of_group(first), of_group(first + pool_.integer(1)));
  }

  void emit_weights(Block& block, const Tile& tile, Expr vector, const std::vector<Expr>& taps,
                    Expr slot, Expr member) {
    unroll(block, "j", tile.vectors, [&](Block& body, Expr j) {
      const Expr x =
          pool_.load(packed_, packed_index(taps, member, vector + j), spec_.dtype, lanes_);
      body.push_back({loop::SetReg{weights_, {slot, j}, x}});
    });
  }

  // The input at `last` of the last dim, of a channel that is filled in.
  Expr input_at(const std::vector<Expr>& taps, Expr last, Var channel) {
    std::vector<Expr> at;
    for (size_t i = 0; i < start_.size(); ++i)
      at.push_back(start_[i] + taps[i] * pool_.integer(spec_.dims[i].dilation));
    at.push_back(last);
    return loop::cast(spec_.input(image_, at, pool_.var(channel)), spec_.dtype);
  }

  void emit_combine(Block& block, Expr value, Expr i, Expr weight, Expr j) {
    const Expr sum = pool_.reg(sums_, {i, j}, spec_.dtype, lanes_);
    const Expr next = weight ? loop::fma(value, weight, sum) : loop::combine(spec_.op, sum, value);
    block.push_back({loop::SetReg{sums_, {i, j}, next}});
  }

  // One tap for every result of the tile.
  void emit_step(Block& block, const Tile& tile, Expr vector, Expr mask,
                 const std::vector<Expr>& taps, Expr turn) {
    const Expr slot = pool_.integer(0);
    if (keeps_weights()) emit_weights(block, tile, vector, taps, slot, turn);
    const std::vector<Expr> outer(taps.begin(), taps.end() - 1);
    unroll(block, "i", tile.height, [&](Block& rows, Expr i) {
      const Expr last = (tile.at + i) * pool_.integer(last_.stride) +
                        taps.back() * pool_.integer(last_.dilation) - pool_.integer(last_.padding);
      unroll(rows, "j", tile.vectors, [&](Block& body, Expr j) {
        emit_element(body, outer, last, vector + j, j, mask, turn, [&](Expr value, Expr member) {
          emit_combine(body, value, i, weight(outer, taps.back(), slot, vector, member, j), j);
        });
      });
    });
  }

  void emit_results(Block& block, const Tile& tile, Expr vector, Expr mask) {
    const Var channel = channel_var(), row = add_var("i", tile.height);
    const Var total =
        kernel_.add_var({"total", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    const Expr total_read = pool_.var(total, spec_.dtype);
    std::vector<Expr> at = position_;
    at.push_back(tile.at + pool_.var(row));
    const ResultElement result = spec_.epilogue(image_, at, pool_.var(channel), total_read);
    const auto store = [&](Block& body, Expr i, Expr j, Expr sum) {
      const auto place = [&](Expr e) {
        return loop::substitute(loop::substitute(e, channel, (vector + j) * pool_.integer(lanes_)),
                                row, i);
      };
      const loop::Bindings bound = {{total_read.node(), sum}};
      const Expr value = loop::vectorize(result.value, {channel, lanes_, mask}, bound);
      body.push_back({loop::Store{result.buffer, place(result.index), place(value), mask, false}});
    };
    const auto sum = [&](Expr i, Expr j) { return pool_.reg(sums_, {i, j}, spec_.dtype, lanes_); };
    const bool is_rolled =
        tile.height > 1 && count_operations({&result.value, 1}) > kRolledEpilogueOps;
    if (!is_rolled) {
      for_each_sum(block, tile, [&](Block& body, Expr i, Expr j) { store(body, i, j, sum(i, j)); });
      return;
    }
    const int64_t width = tile.vectors * lanes_;
    const loop::BufferRef kept =
        kernel_.add_buffer({"tile", spec_.dtype, tile.height * width, loop::Space::stack, true});
    const auto kept_at = [&](Expr i, Expr j) {
      return i * pool_.integer(width) + j * pool_.integer(lanes_);
    };
    for_each_sum(block, tile, [&](Block& body, Expr i, Expr j) {
      body.push_back({loop::Store{kept, kept_at(i, j), sum(i, j), {}, false}});
    });
    const auto emit_kept = [&](Block& rows, Expr i) {
      unroll(rows, "j", tile.vectors, [&](Block& body, Expr j) {
        store(body, i, j, pool_.load(kept, kept_at(i, j), spec_.dtype, lanes_));
      });
    };
    unroll(block, "row", tile.height, emit_kept, LoopKind::serial);
  }

  loop::BufferRef packed_;
  int64_t packed_channels_;
  RegisterTile tile_;
  int lanes_;
  int64_t vectors_;                 // whole ones
  bool is_wide_, takes_turns_;      // members of groups
  int64_t chunk_ = 1, chunks_ = 1;  // vectors of a task, tasks of a row
  Expr chunk_index_, first_vector_, end_vector_;
  loop::RegArray sums_, weights_, element_, spread_;
};

}  // namespace

int64_t packed_channels(const WindowSpec& spec, const Target& target) {
  if (target.groups) return spec.channels;
  const int64_t lanes = target.lanes(dtype_bytes(spec.dtype));
  return ceil_div(spec.channels, lanes) * lanes;
}

void build_window(loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed,
                  const Target& target) {
  if (target.groups) return build_window_of_threads(kernel, spec, packed, target);
  WindowReduction(kernel, spec, packed, target).build();
}

LoopNest pack_window_nest(loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed,
                          const Target& target,
                          const std::function<Expr(std::span<const Expr>, Expr, Expr)>& weight) {
  LoopNest nest;
  loop::Pool& pool = *kernel.pool;
  nest.outs = {packed};
  nest.index = pool.integer(0);
  const auto add = [&](const char* name, int64_t extent) {
    nest.vars.push_back(kernel.add_var({name, loop::VarKind::loop, DType::i64, 1, 0, extent - 1}));
    nest.extents.push_back(extent);
    nest.index = nest.index * pool.integer(extent) + pool.var(nest.vars.back());
    return pool.var(nest.vars.back());
  };
  std::vector<Expr> taps;
  for (const WindowDim& dim : spec.dims) taps.push_back(add("k", dim.taps));
  const Expr member = add("g", spec.group);
  const Expr channel = add("c", packed_channels(spec, target));
  Expr value = weight(taps, member, loop::min(channel, pool.integer(spec.channels - 1)));
  if (packed_channels(spec, target) != spec.channels)
    value = loop::select(loop::lt(channel, pool.integer(spec.channels)), value,
                         loop::constant_like(value, 0));
  nest.values = {value};
  nest.kernel = kernel;
  return nest;
}

}  // namespace lathe
