// The generic schedule: see loop_nest.h for what it decides.
#include "ir/templates/loop_nest.h"

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/collapse.h"
#include "ir/templates/digits.h"
#include "ir/templates/lane_choice.h"
#include "ir/templates/lane_price.h"
#include "ir/templates/pieces.h"
#include "ir/templates/reduction.h"
#include "ir/templates/transpose.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::Let;
using loop::LoopKind;
using loop::Stmt;
using loop::Var;
using Exprs = std::vector<Expr>;

constexpr int64_t kTaskOperations = 20000;  // about 10 us of scalar-equivalent work
constexpr int64_t kMinBlockVectors = 64;    // vectors of the innermost loop in one parallel task
constexpr int64_t kColumnVectors = 4;       // of columns that are summed side by side
constexpr int64_t kTile = 16;               // elements of a line of memory
constexpr int64_t kMostSquareOperations = 512;   // of code for a square that is turned in registers
constexpr size_t kMostPieces = 64;               // parts of an index set with code of their own
constexpr int64_t kMostPieceOperations = 16384;  // in all of them
// Where vectors are spread over threads (Target::groups):
constexpr int64_t kWarp = 32;            // threads that reduce without waiting for others
constexpr int64_t kWarpVectors = 16;     // a row of so many vectors of a warp is one warp's
constexpr int64_t kManyTasks = 1024;     // enough to fill the machine
constexpr int64_t kFewTasks = 256;       // leave part of it idle
constexpr int64_t kMostTaskVectors = 4;  // loads that a thread has under way at once
constexpr int64_t kManyResults = 32768;  // a thread for each fills the machine
constexpr int64_t kLongSum = 64;         // worth the steps between threads that end it

class Scheduler {
 public:
  Scheduler(LoopNest nest, const Target& target) : nest_(std::move(nest)), target_(target) {}

  loop::Kernel run() {
    LoopVars loops{nest_.vars, nest_.extents};
    Exprs indices = {nest_.index};
    collapse(nest_.kernel, loops, nest_.values, indices);
    if (!target_.groups) {
      split_digits(nest_.kernel, loops, nest_.values, indices, target_.row_lanes(4));
      collapse(nest_.kernel, loops, nest_.values, indices);
    }
    nest_.vars = loops.vars;
    nest_.extents = loops.extents;
    nest_.index = indices[0];
    put_lanes_of_sums_last();
    const bool vectorize_inner = !nest_.vars.empty() && (is_turned_ || !sums_along_rows());
    lanes_ = target_.groups ? group_lanes(vectorize_inner)
                            : target_.row_lanes(widest_element(nest_.values));
    if (vectorize_inner && !is_turned_) widen_columns();
    if (vectorize_inner) {
      inner_ = nest_.vars.back();
      inner_extent_ = nest_.extents.back();
      if (may_split())
        is_split_ = !piece_starts(nest_.values, inner_, nest_.kernel, most_pieces()).empty();
      nest_.vars.pop_back();
      nest_.extents.pop_back();
    }
    Block body;
    split_serial(vectorize_inner);
    if (vectorize_inner) tile_transposed();
    decode_outer(body);
    if (vectorize_inner) {
      emit_serial_loops(body);
    } else {
      ReductionEmitter reductions(nest_.kernel, lanes_, target_.groups ? own_lanes() : 0);
      Exprs values;
      for (Expr value : nest_.values) values.push_back(reductions.lower(value, body));
      for (size_t i = 0; i < values.size(); ++i)
        body.push_back({loop::Store{nest_.outs[i], nest_.index, values[i], {}, false}});
    }
    finish(std::move(body));
    return std::move(nest_.kernel);
  }

 private:
  loop::Pool& pool() { return *nest_.kernel.pool; }

  // Lanes that the reductions read side by side, though the results lie along another variable.
  void put_lanes_of_sums_last() {
    if (target_.groups || !contains_reduction(nest_.values)) return;
    const int64_t lanes = target_.row_lanes(widest_element(nest_.values));
    const size_t at = find_lanes_of_sums(nest_.values, nest_.vars);
    const bool is_row =
        !nest_.vars.empty() && loop::linear(nest_.index).coefficient(nest_.vars.back()) == 1;
    if (lanes == 1 || !is_row || at == nest_.vars.size() || nest_.extents[at] < lanes ||
        count_values() * lanes > kMostSquareOperations)
      return;
    is_turned_ = true;
    const auto from = static_cast<ptrdiff_t>(at);
    std::rotate(nest_.vars.begin() + from, nest_.vars.begin() + from + 1, nest_.vars.end());
    std::rotate(nest_.extents.begin() + from, nest_.extents.begin() + from + 1,
                nest_.extents.end());
  }

  // Operations of an element beside its reductions.
  int64_t count_values() {
    Exprs values;
    for (Expr value : nest_.values)
      values.push_back(loop::rewrite(value, [](Expr e) {
        return std::holds_alternative<loop::Reduce>(e->kind) ? loop::constant_like(e, 0) : Expr();
      }));
    return count_operations(values);
  }

  // Columns with a reduction each: several vectors of them at once, so that rows are read in longer
  // pieces and the sums do not wait for each other.
  void widen_columns() {
    if (target_.groups || !reductions_depend_on(nest_.values, nest_.vars.back())) return;
    const int64_t first = read_far_rows(collapsed_reductions(), nest_.vars.back())
                              ? target_.num_vector_registers / 2
                              : kColumnVectors;
    for (int64_t most = first; most > 1; most /= 2) {
      if (nest_.extents.back() < most * lanes_) continue;
      lanes_ *= static_cast<int>(most);
      return;
    }
  }

  // Whether lanes are elements of one sum, not a sum each.
  bool sums_along_rows() {
    const Var inner = nest_.vars.back();
    if (!target_.groups) return prefers_reduction_axis(nest_.values, inner);
    if (!reductions_depend_on(nest_.values, inner)) return false;
    const int64_t own = own_lanes();
    double across = 0, along = 0;
    for (const loop::Reduce& reduce : collapsed_reductions()) {
      if (!loop::depends_on(reduce.body, inner)) continue;
      across += lane_price(reduce.body, inner, nest_.extents.back(), own);
      const LaneChoice choice = cheapest_lanes(reduce, own);
      along += choice.price;
      longest_sum_ = std::max(longest_sum_, choice.extent);
    }
    return along < across || has_few_long_sums();
  }

  // Every reduction of the values with its loops collapsed, as they will be.
  std::vector<loop::Reduce> collapsed_reductions() {
    std::vector<loop::Reduce> found;
    const std::vector<loop::VarInfo> vars = nest_.kernel.vars;
    loop::for_each(nest_.values, [&](Expr e) {
      auto* reduce = std::get_if<loop::Reduce>(&e->kind);
      if (!reduce) return;
      found.push_back(*reduce);
      collapse(nest_.kernel, found.back());
    });
    nest_.kernel.vars = vars;
    return found;
  }

  // Lanes of a thread.
  int64_t own_lanes() const {
    int64_t narrowest = 8;
    for (const loop::Buffer& buffer : nest_.kernel.buffers)
      narrowest = std::min(narrowest, dtype_bytes(buffer.dtype));
    return target_.lanes_per_thread(narrowest);
  }

  // One thread for each sum would leave most of the machine idle for long: a group for each then.
  bool has_few_long_sums() const {
    int64_t results = 1;
    for (int64_t extent : nest_.extents) results *= extent;
    return results < kManyResults && longest_sum_ >= kLongSum;
  }

  // Lanes of vectors that are spread over threads: enough for a row, so that short rows share a
  // block. Rows with sums of their own go to one warp each when there are many of them.
  int group_lanes(bool vectorize_inner) {
    int64_t rows = 1, extent = vectorize_inner ? nest_.extents.back() : 1;
    for (int64_t own : nest_.extents) rows *= own;
    if (vectorize_inner) rows /= std::max<int64_t>(extent, 1);
    const int64_t own = own_lanes();
    const bool sums_rows =
        contains_reduction(nest_.values) &&
        !(vectorize_inner && reductions_depend_on(nest_.values, nest_.vars.back()));
    if (!vectorize_inner)
      for (const loop::Reduce& reduce : collapsed_reductions())
        extent = std::max(extent, cheapest_lanes(reduce, own).extent);
    int64_t most = target_.groups->most;
    if (sums_rows && rows >= kManyTasks && extent <= kWarp * own * kWarpVectors) most = kWarp;
    // Columns that are summed side by side wait long for each of their elements.
    if (!sums_rows && contains_reduction(nest_.values))
      while (most > kWarp && rows * extent < kFewTasks * most * own) most /= 2;
    int64_t threads = 1;
    while (threads < most && threads * own < extent) threads *= 2;
    // No idle lanes, if whole vectors of at least a warp do.
    if (!sums_rows && extent < kMostTaskVectors * most * own)
      for (int64_t fewer = threads; fewer >= kWarp; fewer /= 2)
        if (extent % (fewer * own) == 0) return static_cast<int>(fewer * own);
    return static_cast<int>(threads * own);
  }

  // Loops that no reduction moves with run serially inside the others, so that the reduction is
  // computed once before them. Where lanes are columns with a reduction each, these may be any
  // (softmax over rows); otherwise those inside the last one that a reduction moves with
  // (statistics of a group of channels, used at every pixel).
  void split_serial(bool vectorize_inner) {
    if (!vectorize_inner || !contains_reduction(nest_.values)) return;
    if (reductions_depend_on(nest_.values, inner_)) return split_shared();
    size_t parallel = nest_.vars.size();
    while (parallel > 0 && !reductions_depend_on(nest_.values, nest_.vars[parallel - 1]))
      --parallel;
    for (size_t i = parallel; i < nest_.vars.size(); ++i) {
      serial_.push_back({nest_.vars[i], nest_.extents[i]});
    }
    nest_.vars.resize(parallel);
    nest_.extents.resize(parallel);
  }

  void split_shared() {
    std::vector<Var> vars;
    std::vector<int64_t> extents;
    for (size_t i = 0; i < nest_.vars.size(); ++i) {
      if (reductions_depend_on(nest_.values, nest_.vars[i])) {
        vars.push_back(nest_.vars[i]);
        extents.push_back(nest_.extents[i]);
      } else {
        shared_.push_back({nest_.vars[i], nest_.extents[i]});
      }
    }
    nest_.vars = std::move(vars);
    nest_.extents = std::move(extents);
  }

  // Where lanes lie apart in memory and another loop walks what lies between them, that loop takes
  // a few steps inside the vector loop: what a line of memory holds is used while it is near. Of
  // short expressions these are as many as lanes, and are turned in registers.
  void tile_transposed() {
    if (target_.groups || contains_reduction(nest_.values)) return;
    std::vector<loop::Linear> apart;
    loop::for_each(nest_.values, [&](Expr e) {
      auto* load = std::get_if<loop::Load>(&e->kind);
      if (load == nullptr) return;
      loop::Linear form = loop::linear(load->index);
      if (std::abs(form.coefficient(inner_)) > 1) apart.push_back(std::move(form));
    });
    for (size_t i = nest_.vars.size(); i-- > 0;) {
      const int64_t extent = nest_.extents[i];
      const auto walks = [&](const loop::Linear& form) {
        return form.coefficient(nest_.vars[i]) == 1;
      };
      if (extent < 2 || std::none_of(apart.begin(), apart.end(), walks)) continue;
      is_square_ = may_turn(nest_.vars[i], extent);
      const int64_t step = std::min<int64_t>(extent, is_square_ ? lanes_ : kTile);
      tile_ = nest_.vars[i];
      nest_.extents[i] = (extent + step - 1) / step;
      nest_.vars[i] = nest_.kernel.add_var(
          {"tile", loop::VarKind::loop, DType::i64, 1, 0, nest_.extents[i] - 1});
      tile_lo_ = pool().var(nest_.vars[i]) * pool().integer(step);
      tile_hi_ = tile_lo_ + pool().integer(step);
      tile_step_ = step;
      tile_rest_ = extent % step;
      last_tile_ = pool().integer(extent / step * step);
      if (extent % step != 0) tile_hi_ = loop::min(tile_hi_, pool().integer(extent));
      return;
    }
  }

  // Whether squares of elements along the vectorised variable and this one are turned in registers.
  bool may_turn(Var along, int64_t extent) {
    if (lanes_ == 1 || count_operations(nest_.values) * lanes_ > kMostSquareOperations)
      return false;
    if (!target_.has_masked_memory && extent < lanes_) return false;
    bool found = false;
    loop::for_each(nest_.values, [&](Expr e) { found = found || is_turned(e, inner_, along); });
    return found;
  }

  using Loops = std::vector<std::pair<Var, int64_t>>;

  Block wrap(const Loops& loops, Block inside) {
    for (size_t i = loops.size(); i-- > 0;) {
      Block outer;
      outer.push_back({For{loops[i].first, pool().integer(0), pool().integer(loops[i].second), 1,
                           LoopKind::serial, std::move(inside)}});
      inside = std::move(outer);
    }
    return inside;
  }

  void emit_serial_loops(Block& body) {
    ReductionEmitter reductions(nest_.kernel, lanes_, target_.groups ? own_lanes() : 0);
    std::vector<Var> inside = {inner_};
    for (const auto& [var, extent] : serial_) {
      inside.push_back(var);
      row_vars_.push_back(var);
    }
    const Exprs values = reductions.hoist_invariant(nest_.values, inside, body);
    Block rows;
    emit_rows(rows, values);
    for (Stmt& stmt : wrap(serial_, std::move(rows))) body.push_back(std::move(stmt));
  }

  // Declares the parallel variable and recovers the outer loop variables from it. Rows may be cut
  // into blocks, so that few long ones still make enough tasks, but for those of which every block
  // would compute a reduction anew.
  void decode_outer(Block& body) {
    int64_t rows = 1;
    for (int64_t extent : nest_.extents) rows *= extent;
    const bool may_cut =
        !is_split_ && (!shared_.empty() || has_own_reductions(nest_.values, inner_));
    block_extent_ = inner_extent_;
    if (target_.groups && inner_extent_ > 0 && may_cut) {
      const int64_t vectors =
          std::clamp<int64_t>(rows * inner_extent_ / (lanes_ * kManyTasks), 1, kMostTaskVectors);
      block_extent_ = std::min(inner_extent_, vectors * lanes_);
    } else if (inner_extent_ > 0 && may_cut) {
      const int64_t least = contains_reduction(nest_.values) ? 1 : kMinBlockVectors;
      const int64_t work = std::max<int64_t>(1, count_operations(nest_.values));
      const int64_t vectors = std::max(least, kTaskOperations / work);
      if (inner_extent_ >= 2 * least * lanes_)
        block_extent_ = std::min(inner_extent_, vectors * lanes_);
    }
    blocks_ = block_extent_ > 0 ? (inner_extent_ + block_extent_ - 1) / block_extent_ : 1;
    if (blocks_ > 1 && !target_.groups) {  // the last no shorter than it must be
      const int64_t even = (inner_extent_ + blocks_ - 1) / blocks_;
      block_extent_ = (even + lanes_ - 1) / lanes_ * lanes_;
    }
    task_ =
        nest_.kernel.add_var({"task", loop::VarKind::loop, DType::i64, 1, 0, rows * blocks_ - 1});
    tasks_ = rows * blocks_;
    Expr task = pool().var(task_), rest = task;
    if (blocks_ > 1) {
      block_ = loop::mod(task, pool().integer(blocks_));
      rest = let(body, "row", loop::floor_div(task, pool().integer(blocks_)), rows - 1);
    }
    for (size_t i = nest_.vars.size(); i-- > 0;) {
      Expr value = i == 0 ? rest : loop::mod(rest, pool().integer(nest_.extents[i]));
      Expr named = let(body, nest_.kernel.vars[nest_.vars[i].id].name, value, nest_.extents[i] - 1);
      nest_.values = substitute(nest_.values, nest_.vars[i], named);
      nest_.index = loop::substitute(nest_.index, nest_.vars[i], named);
      if (tile_lo_) {
        tile_lo_ = loop::substitute(tile_lo_, nest_.vars[i], named);
        tile_hi_ = loop::substitute(tile_hi_, nest_.vars[i], named);
      }
      if (auto* read = std::get_if<loop::VarRead>(&named->kind)) row_vars_.push_back(read->var);
      if (i > 0) rest = loop::floor_div(rest, pool().integer(nest_.extents[i]));
    }
  }

  static Exprs substitute(Exprs exprs, Var var, Expr value) {
    for (Expr& e : exprs) e = loop::substitute(e, var, value);
    return exprs;
  }

  Expr let(Block& body, const std::string& name, Expr value, int64_t max) {
    if (std::holds_alternative<loop::VarRead>(value->kind)) return value;
    Var var = nest_.kernel.add_var({name, loop::VarKind::let, DType::i64, 1, 0, max});
    body.push_back({Let{var, value}});
    return pool().var(var);
  }

  // Where a variable is compared with constants, every piece between them has code of its own, in
  // which nothing is compared and nothing read that only another piece needs. Threads that share a
  // vector would wait for each other's pieces instead.
  bool may_split() const { return !target_.groups; }
  size_t most_pieces() const {
    const int64_t operations = std::max<int64_t>(1, count_operations(nest_.values));
    return std::min(kMostPieces, static_cast<size_t>(kMostPieceOperations / operations));
  }

  // The vectorised innermost loop, under the conditions that the loops around it decide.
  void emit_rows(Block& body, const Exprs& values) {
    const size_t room = std::max(most_pieces(), num_pieces_) - num_pieces_;
    for (Var var : row_vars_) {
      if (!may_split()) break;
      const std::vector<int64_t> starts = piece_starts(values, var, nest_.kernel, room);
      if (starts.empty()) continue;
      num_pieces_ += starts.size();
      const loop::VarInfo& info = nest_.kernel.vars[var.id];
      return emit_branches(body, values, var, starts, info.min, info.max);
    }
    emit_row(body, values);
  }

  // One branch for each piece of var's range [min, max].
  void emit_branches(Block& body, const Exprs& values, Var var, std::span<const int64_t> starts,
                     int64_t min, int64_t max) {
    if (starts.empty()) return emit_rows(body, simplify_within(values, var, min, max));
    const size_t middle = starts.size() / 2;
    const int64_t start = starts[middle];
    loop::If branch{loop::lt(pool().var(var), pool().integer(start)), {}, {}};
    emit_branches(branch.then_body, values, var, starts.first(middle), min, start - 1);
    emit_branches(branch.else_body, values, var, starts.subspan(middle + 1), start, max);
    body.push_back({std::move(branch)});
  }

  // What the values are where var lies in [min, max].
  Exprs simplify_within(Exprs values, Var var, int64_t min, int64_t max) {
    const Var piece = nest_.kernel.add_var(
        {nest_.kernel.vars[var.id].name, loop::VarKind::loop, DType::i64, 1, min, max});
    for (Expr& value : values) {
      value = loop::simplify_index(loop::substitute(value, var, pool().var(piece)), nest_.kernel);
      value = loop::substitute(value, piece, pool().var(var));
    }
    return values;
  }

  // Whole vectors, then the masked rest; of every piece, where there are some.
  void emit_row(Block& body, const Exprs& values) {
    if (is_split_) {
      std::vector<int64_t> ends = piece_starts(values, inner_, nest_.kernel, most_pieces());
      ends.push_back(inner_extent_);
      int64_t start = 0;
      for (int64_t end : ends) {
        emit_vectors(body, simplify_within(values, inner_, start, end - 1), start, end);
        start = end;
      }
      return;
    }
    if (blocks_ == 1) return emit_vectors(body, values, 0, inner_extent_);
    // Blocks hold whole vectors, so only the last block has a rest.
    Expr lo =
        let(body, "lo", block_ * pool().integer(block_extent_), (blocks_ - 1) * block_extent_);
    const int64_t whole = inner_extent_ / lanes_ * lanes_;
    Expr hi = lo + pool().integer(block_extent_);
    const bool is_even = inner_extent_ == blocks_ * block_extent_;  // all blocks are equal
    if (!target_.groups || !is_even) hi = loop::min(hi, pool().integer(whole));
    emit_vector_loop(body, values, lo, hi);
    if (whole == inner_extent_) return;
    Block tail;
    emit_tail(tail, values, whole, inner_extent_ - whole);
    body.push_back({loop::If{loop::eq(block_, pool().integer(blocks_ - 1)), std::move(tail), {}}});
  }

  void emit_vectors(Block& body, const Exprs& values, int64_t start, int64_t end) {
    const int64_t whole = start + (end - start) / lanes_ * lanes_;
    if (whole > start) emit_vector_loop(body, values, pool().integer(start), pool().integer(whole));
    if (whole < end) emit_tail(body, values, whole, end - whole);
  }

  void emit_vector_loop(Block& body, const Exprs& values, Expr lo, Expr hi) {
    Block inside;
    emit_stores(inside, values, nest_.index, {inner_, lanes_, {}, !target_.groups}, lanes_);
    body.push_back({For{inner_, lo, hi, lanes_, LoopKind::serial, std::move(inside)}});
  }

  void emit_tail(Block& body, const Exprs& values, int64_t start, int64_t count) {
    Var lane0 = nest_.kernel.add_var({nest_.kernel.vars[inner_.id].name + "_tail",
                                      loop::VarKind::let, DType::i64, 1, 0, inner_extent_ - 1});
    body.push_back({Let{lane0, pool().integer(start)}});
    Expr at = pool().var(lane0);
    Expr mask = loop::lt(pool().ramp(pool().integer(0), 1, lanes_),
                         loop::splat(pool().integer(count), lanes_));
    emit_stores(body, substitute(values, inner_, at), loop::substitute(nest_.index, inner_, at),
                {lane0, lanes_, mask}, count);
  }

  // Of a vector of which so many lanes exist.
  void emit_stores(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                   int64_t count) {
    if (is_square_) return emit_squares(body, values, index, axis, count);
    ReductionEmitter reductions(nest_.kernel, lanes_);
    const loop::Bindings bound = reductions.lower_lanes(values, axis, body);
    if (is_turned_) return emit_turned(body, values, index, axis, count, bound);
    Block stores;
    for (size_t i = 0; i < values.size(); ++i) {
      const Expr vector = loop::vectorize(values[i], axis, bound);
      stores.push_back({loop::Store{nest_.outs[i], index, vector, axis.mask, false}});
    }
    if (tile_lo_) {
      body.push_back({For{tile_, tile_lo_, tile_hi_, 1, LoopKind::serial, std::move(stores)}});
      return;
    }
    for (Stmt& stmt : wrap(shared_, std::move(stores))) body.push_back(std::move(stmt));
  }

  // The last square may have fewer steps than the others.
  void emit_squares(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                    int64_t count) {
    Block whole;
    emit_square(whole, values, index, axis, count, tile_step_);
    if (tile_rest_ > 0) {
      Block rest;
      emit_square(rest, values, index, axis, count, tile_rest_);
      body.push_back({loop::If{loop::lt(tile_lo_, last_tile_), std::move(whole), std::move(rest)}});
      return;
    }
    for (Stmt& stmt : whole) body.push_back(std::move(stmt));
  }

  void emit_square(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                   int64_t count, int64_t steps) {
    store_square(nest_.kernel, {axis.var, tile_, lanes_, count, tile_lo_, steps}, axis, nest_.outs,
                 values, index, body);
  }

  // The innermost shared loop in squares, then the others around it.
  void emit_turned(Block& body, const Exprs& values, Expr index, const loop::VectorAxis& axis,
                   int64_t count, const loop::Bindings& bound) {
    const auto [along, extent] = shared_.back();
    const int64_t squares = extent / lanes_, rest = extent % lanes_;
    const auto store = [&](Block& into, Expr first, int64_t steps) {
      store_turned_square(nest_.kernel, {axis.var, along, lanes_, count, first, steps}, axis,
                          nest_.outs, values, index, bound, into);
    };
    Block inside;
    if (squares > 0) {
      const Var square =
          nest_.kernel.add_var({"square", loop::VarKind::loop, DType::i64, 1, 0, squares - 1});
      Block whole;
      store(whole, pool().var(square) * pool().integer(lanes_), lanes_);
      inside.push_back({For{square, pool().integer(0), pool().integer(squares), 1, LoopKind::serial,
                            std::move(whole)}});
    }
    if (rest > 0) store(inside, pool().integer(squares * lanes_), rest);
    const Loops around(shared_.begin(), shared_.end() - 1);
    for (Stmt& stmt : wrap(around, std::move(inside))) body.push_back(std::move(stmt));
  }

  void finish(Block body) {
    const int64_t extent = std::clamp<int64_t>(block_extent_, 1, kMostOperations);
    const int64_t per_task = std::max<int64_t>(1, count_operations(nest_.values) * extent / lanes_);
    nest_.kernel.grain = std::max<int64_t>(1, kTaskOperations / per_task);
    nest_.kernel.body.clear();
    nest_.kernel.body.push_back({For{task_, pool().integer(0), pool().integer(tasks_), 1,
                                     LoopKind::parallel, std::move(body)}});
  }

  LoopNest nest_;
  const Target& target_;
  int lanes_ = 1;
  Var inner_, task_;
  Var tile_;  // runs from tile_lo_ to tile_hi_ inside the vector loop; these are null without one
  Expr tile_lo_, tile_hi_;
  bool is_turned_ = false;  // lanes lie apart in the results
  bool is_square_ = false;  // its steps are vectors that are turned in registers
  int64_t tile_step_ = 0, tile_rest_ = 0;
  Expr last_tile_;
  Loops serial_;               // around the vector loop
  Loops shared_;               // inside it
  std::vector<Var> row_vars_;  // what the loops around it have become
  bool is_split_ = false;      // its range has pieces
  size_t num_pieces_ = 0;      // of the loops around it
  int64_t longest_sum_ = 1;    // extent of the variable that its lanes would be
  int64_t inner_extent_ = 0, block_extent_ = 0, blocks_ = 1, tasks_ = 1;
  Expr block_;
};

}  // namespace

loop::Kernel schedule(LoopNest nest, const Target& target) {
  return Scheduler(std::move(nest), target).run();
}

}  // namespace lathe
