// The loops of a nest, once they are decided on: see nest_scheduler.h.
#include "ir/templates/nest_scheduler.h"

#include <algorithm>

#include "ir/loop/linear.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/dear_select.h"
#include "ir/templates/lane_choice.h"
#include "ir/templates/pieces.h"
#include "ir/templates/positions.h"
#include "ir/templates/reduction.h"

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

constexpr size_t kMostPieces = 64;               // parts of an index set with code of their own
constexpr int kMostAsked = 24;                   // branches on what lanes need, in a kernel
constexpr int64_t kMostPieceOperations = 16384;  // in all of them

Exprs substitute(Exprs exprs, Var var, Expr value) {
  for (Expr& e : exprs) e = loop::substitute(e, var, value);
  return exprs;
}

}  // namespace

loop::Kernel NestScheduler::run() {
  LoopVars loops{nest_.vars, nest_.extents};
  Exprs indices = {nest_.index};
  collapse(nest_.kernel, loops, nest_.values, indices);
  split_loops(loops, indices);
  nest_.vars = loops.vars;
  nest_.extents = loops.extents;
  nest_.index = indices[0];
  const bool is_turned = turn_results();
  const bool vectorize_inner = !nest_.vars.empty() && (is_turned || !sums_along_rows());
  lanes_ = choose_lanes(vectorize_inner);
  if (vectorize_inner) {
    inner_ = nest_.vars.back();
    inner_extent_ = nest_.extents.back();
    // Where a piece ends is a number, which may lie behind the end of a size.
    if (style_.has_pieces && inner_extent_.is_const())
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
    ReductionEmitter reductions(nest_.kernel, lanes_, lanes_of_thread());
    Exprs values;
    for (Expr value : rows_[0].values) values.push_back(reductions.lower(value, body));
    for (size_t i = 0; i < values.size(); ++i)
      body.push_back({loop::Store{nest_.outs[i], rows_[0].index, values[i], {}, false}});
  }
  finish(std::move(body));
  return std::move(nest_.kernel);
}

// Every reduction of the values with its loops collapsed, as they will be.
std::vector<loop::Reduce> NestScheduler::collapsed_reductions() {
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

// Loops that no reduction moves with run serially inside the others, so that the reduction is
// computed once before them. Where lanes are columns with a reduction each, these may be any
// (softmax over rows); otherwise those inside the last one that a reduction moves with
// (statistics of a group of channels, used at every pixel).
void NestScheduler::split_serial(bool vectorize_inner) {
  if (!vectorize_inner || !contains_reduction(nest_.values)) return;
  if (reductions_depend_on(nest_.values, inner_)) return split_shared();
  size_t parallel = nest_.vars.size();
  while (parallel > 0 && !reductions_depend_on(nest_.values, nest_.vars[parallel - 1])) --parallel;
  for (size_t i = parallel; i < nest_.vars.size(); ++i) {
    serial_.push_back({nest_.vars[i], nest_.extents[i]});
  }
  nest_.vars.resize(parallel);
  nest_.extents.resize(parallel);
}

void NestScheduler::split_shared() {
  std::vector<Var> vars;
  std::vector<Dim> extents;
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

Block NestScheduler::wrap(const Loops& loops, Block inside) {
  for (size_t i = loops.size(); i-- > 0;) {
    Block outer;
    outer.push_back({For{loops[i].first, pool().integer(0), pool().size(loops[i].second), 1,
                         LoopKind::serial, std::move(inside)}});
    inside = std::move(outer);
  }
  return inside;
}

// The reductions of all rows of a task come before the results of any: while one waits for its last
// operation others go on.
void NestScheduler::emit_serial_loops(Block& body) {
  ReductionEmitter reductions(nest_.kernel, lanes_, lanes_of_thread());
  std::vector<Var> inside = {inner_};
  for (const auto& [var, extent] : serial_) inside.push_back(var);
  Exprs values;
  for (const Row& row : rows_) {
    if (may_keep_rows())
      for (const RowValue& value : row_values(row.values, inner_, inner_extent_))
        reductions.keep(value, inner_, row_buffer(value.first->dtype));
    values.insert(values.end(), row.values.begin(), row.values.end());
  }
  values = reductions.hoist_invariant(std::move(values), inside, body);
  auto next = values.begin();
  for (Row& row : rows_) {
    std::copy_n(next, row.values.size(), row.values.begin());
    next += static_cast<ptrdiff_t>(row.values.size());
    for (const auto& [var, extent] : serial_) row.vars.push_back(var);
    Block results;
    emit_rows(results, row, row.values);
    results = wrap(serial_, std::move(results));
    if (row.exists)
      body.push_back({loop::If{row.exists, std::move(results), {}}});
    else
      for (Stmt& stmt : results) body.push_back(std::move(stmt));
  }
}

// An element for each of a row.
loop::BufferRef NestScheduler::row_buffer(DType dtype) {
  return nest_.kernel.add_buffer({"row", dtype, inner_extent_, loop::Space::scratch, true});
}

// Declares the parallel variable and recovers the outer loop variables from it. Rows may be cut
// into blocks, so that few long ones still make enough tasks, but for those of which every block
// would compute a reduction anew. Of short ones a task may have several, the last ones of which are
// the last row again where there are no more.
void NestScheduler::decode_outer(Block& body) {
  Dim rows = 1;
  for (const Dim& extent : nest_.extents) rows = rows * extent;
  const bool may_cut = !is_split_ && (!shared_.empty() || has_own_reductions(nest_.values, inner_));
  const bool is_empty = inner_extent_ == Dim(0);
  block_extent_ = !is_empty && may_cut ? Dim(choose_block(hint(rows))) : inner_extent_;
  blocks_ = block_extent_ == inner_extent_ ? Dim(1) : ceil_div(inner_extent_, block_extent_);
  const bool may_join = !is_empty && !is_split_ && serial_.empty() && shared_.empty();
  const int64_t at_once = may_join && blocks_ == Dim(1) ? choose_rows(hint(rows)) : 1;
  tasks_ = ceil_div(rows, at_once) * blocks_;
  task_ = nest_.kernel.add_loop_var("task", tasks_);
  const Expr task = pool().var(task_);
  Expr first = task * pool().integer(at_once);
  if (blocks_ != Dim(1)) {
    const bool is_one_row = rows == Dim(1) && !blocks_.is_const();
    block_ = is_one_row ? task : loop::mod(task, pool().size(blocks_));
    first = is_one_row ? pool().integer(0)
                       : let(body, "row", loop::floor_div(task, pool().size(blocks_)), rows);
  }
  for (int64_t i = 0; i < at_once; ++i) {
    Expr at = first + pool().integer(i), exists;
    if (i > 0 && Dim::mod(rows, at_once) != Dim(0)) {
      exists = loop::lt(at, pool().size(rows));
      at = loop::min(at, pool().size(rows - Dim(1)));
    }
    rows_.push_back(decode_row(body, at_once > 1 ? let(body, "row", at, rows) : at));
    rows_.back().exists = exists;
  }
}

// What the nest is at this position of all those outside the innermost loop.
NestScheduler::Row NestScheduler::decode_row(Block& body, Expr position) {
  Row row{nest_.values, nest_.index, {}, {}};
  for (size_t i = nest_.vars.size(); i-- > 0;) {
    Expr value = i == 0 ? position : loop::mod(position, pool().size(nest_.extents[i]));
    Expr named = let(body, nest_.kernel.vars[nest_.vars[i].id].name, value, nest_.extents[i]);
    row.values = substitute(row.values, nest_.vars[i], named);
    row.index = loop::substitute(row.index, nest_.vars[i], named);
    if (tile_lo_) {
      tile_lo_ = loop::substitute(tile_lo_, nest_.vars[i], named);
      tile_hi_ = loop::substitute(tile_hi_, nest_.vars[i], named);
    }
    if (auto* read = std::get_if<loop::VarRead>(&named->kind)) row.vars.push_back(read->var);
    if (i > 0) position = loop::floor_div(position, pool().size(nest_.extents[i]));
  }
  return row;
}

Expr NestScheduler::let(Block& body, const std::string& name, Expr value, const Dim& extent) {
  if (std::holds_alternative<loop::VarRead>(value->kind)) return value;
  const Var var = nest_.kernel.add_var({name, loop::VarKind::let});
  nest_.kernel.set_extent(var, extent);
  body.push_back({Let{var, value}});
  return pool().var(var);
}

size_t NestScheduler::most_pieces() const {
  const int64_t operations = std::max<int64_t>(1, count_operations(nest_.values));
  return std::min(kMostPieces, static_cast<size_t>(kMostPieceOperations / operations));
}

// The vectorised innermost loop, under the conditions that the loops around it decide.
void NestScheduler::emit_rows(Block& body, const Row& row, const Exprs& values) {
  const size_t room = std::max(most_pieces(), num_pieces_) - num_pieces_;
  for (Var var : row.vars) {
    if (!style_.has_pieces) break;
    const std::vector<int64_t> starts = piece_starts(values, var, nest_.kernel, room);
    if (starts.empty()) continue;
    num_pieces_ += starts.size();
    const loop::VarInfo& info = nest_.kernel.vars[var.id];
    return emit_branches(body, row, values, var, starts, info.min, info.max);
  }
  emit_row(body, row.index, values);
}

// One branch for each piece of var's range [min, max].
void NestScheduler::emit_branches(Block& body, const Row& row, const Exprs& values, Var var,
                                  std::span<const int64_t> starts, int64_t min, int64_t max) {
  if (starts.empty()) return emit_rows(body, row, simplify_within(values, var, min, max));
  const size_t middle = starts.size() / 2;
  const int64_t start = starts[middle];
  loop::If branch{loop::lt(pool().var(var), pool().integer(start)), {}, {}};
  emit_branches(branch.then_body, row, values, var, starts.first(middle), min, start - 1);
  emit_branches(branch.else_body, row, values, var, starts.subspan(middle + 1), start, max);
  body.push_back({std::move(branch)});
}

// What the values are where var lies in [min, max].
Exprs NestScheduler::simplify_within(Exprs values, Var var, int64_t min, int64_t max) {
  const Var piece = nest_.kernel.add_var(
      {nest_.kernel.vars[var.id].name, loop::VarKind::loop, DType::i64, 1, min, max});
  for (Expr& value : values) {
    value = loop::simplify_index(loop::substitute(value, var, pool().var(piece)), nest_.kernel);
    value = loop::substitute(value, piece, pool().var(var));
  }
  return values;
}

// Whole vectors, then the masked rest; of every piece, where there are some.
void NestScheduler::emit_row(Block& body, Expr index, const Exprs& values) {
  if (is_split_) {
    std::vector<int64_t> ends = piece_starts(values, inner_, nest_.kernel, most_pieces());
    ends.push_back(inner_extent_.value());
    int64_t start = 0;
    for (int64_t end : ends) {
      emit_vectors(body, index, simplify_within(values, inner_, start, end - 1), start, end);
      start = end;
    }
    return;
  }
  if (blocks_ == Dim(1)) return emit_vectors(body, index, values, 0, inner_extent_);
  // Blocks hold whole vectors, so only the last block has a rest.
  Expr lo = let(body, "lo", block_ * pool().size(block_extent_),
                (blocks_ - Dim(1)) * block_extent_ + Dim(1));
  const Dim whole = whole_vectors(inner_extent_);
  Expr hi = lo + pool().size(block_extent_);
  const bool is_even = inner_extent_ == blocks_ * block_extent_;  // all blocks are equal
  if (style_.clamps_equal_blocks || !is_even) hi = loop::min(hi, pool().size(whole));
  emit_vector_loop(body, index, values, lo, hi);
  if (whole == inner_extent_) return;
  Block tail;
  emit_tail(tail, index, values, whole, inner_extent_);
  body.push_back({loop::If{loop::eq(block_, pool().size(blocks_ - Dim(1))), std::move(tail), {}}});
}

Dim NestScheduler::whole_vectors(const Dim& extent) const {
  return Dim::floor_div(extent, lanes_) * Dim(lanes_);
}

void NestScheduler::emit_vectors(Block& body, Expr index, const Exprs& values, const Dim& start,
                                 const Dim& end) {
  const Dim whole = start + whole_vectors(end - start);
  if (whole != start) emit_vector_loop(body, index, values, pool().size(start), pool().size(whole));
  if (whole != end) emit_tail(body, index, values, whole, end);
}

void NestScheduler::emit_vector_loop(Block& body, Expr index, const Exprs& values, Expr lo,
                                     Expr hi) {
  Block inside;
  emit_stores(inside, values, index, {inner_, lanes_, {}, style_.moves_lanes}, lanes_);
  body.push_back({For{inner_, lo, hi, lanes_, LoopKind::serial, std::move(inside)}});
}

// Of a size only when it leaves a rest.
void NestScheduler::emit_tail(Block& body, Expr index, const Exprs& values, const Dim& start,
                              const Dim& end) {
  const Dim count = end - start;
  if (!count.is_const()) {
    Block rest;
    emit_rest(rest, index, values, start, count);
    body.push_back({loop::If{loop::lt(pool().size(start), pool().size(end)), std::move(rest), {}}});
    return;
  }
  emit_rest(body, index, values, start, count);
}

void NestScheduler::emit_rest(Block& body, Expr index, const Exprs& values, const Dim& start,
                              const Dim& count) {
  const Var lane0 =
      nest_.kernel.add_var({nest_.kernel.vars[inner_.id].name + "_tail", loop::VarKind::let});
  nest_.kernel.set_extent(lane0, inner_extent_);
  body.push_back({Let{lane0, pool().size(start)}});
  Expr at = pool().var(lane0);
  Expr mask =
      loop::lt(pool().ramp(pool().integer(0), 1, lanes_), loop::splat(pool().size(count), lanes_));
  emit_stores(body, substitute(values, inner_, at), loop::substitute(index, inner_, at),
              {lane0, lanes_, mask},
              count.is_const() ? std::optional(count.value()) : std::nullopt);
}

// Of a vector of which so many lanes exist; nothing: that depends on a size.
void NestScheduler::emit_stores(Block& body, const Exprs& values, Expr index,
                                const loop::VectorAxis& axis, std::optional<int64_t> count) {
  if (count && store_squares(body, values, index, axis, *count)) return;
  if (store_needed(body, values, index, axis, count)) return;
  ReductionEmitter reductions(nest_.kernel, lanes_);
  const loop::Bindings bound = reductions.lower_lanes(values, axis, body);
  if (count && store_turned(body, values, index, axis, *count, bound)) return;
  // Of a variable along which results lie apart, a place for each lane.
  const bool is_apart = loop::linear(index).coefficient(axis.var) != 1;
  const Expr place = is_apart ? loop::vectorize(index, {axis.var, axis.lanes}) : index;
  Block stores;
  for (size_t i = 0; i < values.size(); ++i) {
    const Expr vector = loop::vectorize(values[i], axis, bound);
    stores.push_back({loop::Store{nest_.outs[i], place, vector, axis.mask, false}});
  }
  if (tile_lo_) {
    body.push_back({For{tile_, tile_lo_, tile_hi_, 1, LoopKind::serial, std::move(stores)}});
    return;
  }
  for (Stmt& stmt : wrap(shared_, std::move(stores))) body.push_back(std::move(stmt));
}

// Of vectors in which what is dear is often needed by no lane.
bool NestScheduler::store_needed(Block& body, const Exprs& values, Expr index,
                                 const loop::VectorAxis& axis, std::optional<int64_t> count) {
  if (!style_.asks_lanes || axis.lanes == 1 || num_asked_ >= kMostAsked) return false;
  // Positions are nearly always inside.
  const auto free = axis.mask ? std::nullopt : without_clamps(values, axis.var);
  const bool asks_position = free && asked_.count(free->is_outside.node()) == 0;
  const auto dear = asks_position ? std::nullopt : dear_select(values, axis.var, asked_);
  if (!asks_position && !dear) return false;
  const Expr condition = asks_position ? free->is_outside : dear->is_needed;
  // What moves inside the vector loop is no variable here yet.
  bool is_known = !tile_lo_ || !loop::depends_on(condition, tile_);
  for (const auto& inside : shared_)
    is_known = is_known && !loop::depends_on(condition, inside.first);
  if (!is_known) return false;
  const loop::ExprNode* asked = asks_position ? condition.node() : dear->select.node();
  loop::If branch{
      loop::reduce_lanes(loop::ReduceOp::any, loop::vectorize(condition, axis)), {}, {}};
  asked_.insert(asked);
  ++num_asked_;
  emit_stores(branch.then_body, values, index, axis, count);
  emit_stores(branch.else_body, asks_position ? free->values : dear->cheap, index, axis, count);
  asked_.erase(asked);
  body.push_back({std::move(branch)});
  return true;
}

void NestScheduler::finish(Block body) {
  const int64_t extent = std::clamp<int64_t>(
      hint(block_extent_) * static_cast<int64_t>(rows_.size()), 1, kMostOperations);
  const int64_t per_task = std::max<int64_t>(1, count_operations(nest_.values) * extent / lanes_);
  nest_.kernel.grain = std::max<int64_t>(1, kTaskOperations / per_task);
  nest_.kernel.body.clear();
  nest_.kernel.body.push_back(
      {For{task_, pool().integer(0), pool().size(tasks_), 1, LoopKind::parallel, std::move(body)}});
}

}  // namespace lathe
