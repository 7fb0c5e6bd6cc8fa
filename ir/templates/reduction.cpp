// Loops for reduce expressions: vectorised along the reduction, or one accumulator lane per output.
#include "ir/templates/reduction.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/templates/collapse.h"
#include "ir/templates/lane_price.h"
#include "ir/templates/loop_nest.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::Let;
using loop::LoopKind;
using loop::Reduce;
using loop::ReduceOp;
using loop::SetReg;
using loop::Stmt;
using loop::Var;

constexpr int64_t kAccumulators = 4;  // independent chains that hide the latency of an add
// Of one element, among them a function: dearer one by one than reading elements that lie apart.
constexpr int64_t kManyOperations = 8;

const Reduce* as_reduce(Expr e) { return std::get_if<Reduce>(&e->kind); }

// Variables an expression reads that no reduction inside it binds.
std::set<uint32_t> free_vars(Expr root) {
  std::unordered_map<const loop::ExprNode*, std::set<uint32_t>> memo;
  auto visit = [&](auto&& self, Expr e) -> const std::set<uint32_t>& {
    if (auto found = memo.find(e.node()); found != memo.end()) return found->second;
    std::set<uint32_t> vars;
    if (auto* read = std::get_if<loop::VarRead>(&e->kind)) vars.insert(read->var.id);
    for (Expr child : loop::children(e)) {
      const std::set<uint32_t>& inner = self(self, child);
      vars.insert(inner.begin(), inner.end());
    }
    if (auto* reduce = as_reduce(e)) {
      for (Var var : reduce->vars) vars.erase(var.id);
    }
    return memo.emplace(e.node(), std::move(vars)).first->second;
  };
  return visit(visit, root);
}

// Reductions that stand in no other reduction.
std::vector<Expr> outermost_reductions(std::span<const Expr> roots) {
  std::vector<Expr> found;
  std::set<const loop::ExprNode*> seen;
  auto visit = [&](auto&& self, Expr e) -> void {
    if (!seen.insert(e.node()).second) return;
    if (as_reduce(e)) {
      found.push_back(e);
      return;
    }
    for (Expr child : loop::children(e)) self(self, child);
  };
  for (Expr root : roots) visit(visit, root);
  return found;
}

// Every reduction, inner ones first.
std::vector<Expr> all_reductions(std::span<const Expr> roots) {
  std::vector<Expr> found;
  loop::for_each(roots, [&](Expr e) {
    if (as_reduce(e)) found.push_back(e);
  });
  return found;
}

// Those of inner ones, which come first in the list, before those that wait for them.
void sort_by_depth(std::vector<Expr>& reductions) {
  std::unordered_map<const loop::ExprNode*, int> depths;
  for (Expr reduce : reductions) {
    int depth = 0;
    for (Expr inside : all_reductions({&as_reduce(reduce)->body, 1}))
      depth = std::max(depth, depths[inside.node()] + 1);
    depths[reduce.node()] = depth;
  }
  std::stable_sort(reductions.begin(), reductions.end(),
                   [&](Expr a, Expr b) { return depths[a.node()] < depths[b.node()]; });
}

// What the reductions bind.
std::set<uint32_t> bound_vars(const std::vector<Expr>& reductions) {
  std::set<uint32_t> vars;
  for (Expr reduce : reductions)
    for (Var var : as_reduce(reduce)->vars) vars.insert(var.id);
  return vars;
}

bool moves_with(Expr e, const std::set<uint32_t>& vars) {
  const std::set<uint32_t> own = free_vars(e);
  return std::any_of(own.begin(), own.end(), [&](uint32_t id) { return vars.count(id) > 0; });
}

bool reads_evenly(Expr body, Var var) {
  bool even = true, contiguous = false, any = false;
  loop::for_each(body, [&](Expr e) {
    auto* load = std::get_if<loop::Load>(&e->kind);
    if (!load) return;
    any = true;
    const loop::Linear form = loop::linear(load->index);
    for (const auto& [atom, coefficient] : form.terms) {
      if (!std::holds_alternative<loop::VarRead>(atom->kind) && loop::depends_on(atom, var))
        even = false;
    }
    const int64_t step = form.coefficient(var);
    even = even && (step == 0 || step == 1);
    contiguous = contiguous || step == 1;
  });
  return even && (contiguous || !any);
}

// What is best to an argmax or an argmin.
ReduceOp order_of(const Reduce& reduce) {
  return reduce.op == ReduceOp::argmax ? ReduceOp::max : ReduceOp::min;
}

}  // namespace

bool contains_reduction(std::span<const Expr> exprs) {
  return !outermost_reductions(exprs).empty();
}

bool reductions_depend_on(std::span<const Expr> exprs, Var var) {
  for (Expr reduce : all_reductions(exprs)) {
    if (free_vars(reduce).count(var.id) > 0) return true;
  }
  return false;
}

Expr ReductionEmitter::lower(Expr e, Block& block) {
  for (Expr reduce : outermost_reductions({&e, 1})) emit(reduce, block);
  return loop::bind(e, done_);
}

std::vector<Expr> ReductionEmitter::hoist_invariant(std::vector<Expr> exprs,
                                                    const std::vector<Var>& vars, Block& block) {
  std::vector<Expr> reductions = all_reductions(exprs);
  std::set<uint32_t> inner = bound_vars(reductions);
  for (Var var : vars) inner.insert(var.id);
  sort_by_depth(reductions);
  for (Expr reduce : reductions)
    if (!moves_with(reduce, inner)) emit(reduce, block);
  for (Expr& e : exprs) e = loop::bind(e, done_);
  return exprs;
}

loop::Bindings ReductionEmitter::lower_lanes(std::span<const Expr> exprs,
                                             const loop::VectorAxis& axis, Block& block) {
  // Not the outermost alone: one that stands in another and does not move with it is made before.
  const std::vector<Expr> reductions = all_reductions(exprs);
  const std::set<uint32_t> inner = bound_vars(reductions);
  loop::Bindings bound;
  for (Expr reduce : reductions)
    if (!moves_with(reduce, inner)) emit_lanes(reduce, axis, bound, block);
  return bound;
}

Expr ReductionEmitter::emit(Expr e, Block& block) {
  if (auto found = done_.find(e.node()); found != done_.end()) return found->second;
  Reduce reduce = *as_reduce(e);
  // Inner reductions that do not move with this one come first, once.
  const std::vector<Expr> inside = all_reductions({&reduce.body, 1});
  std::set<uint32_t> own = bound_vars(inside);
  for (Var var : reduce.vars) own.insert(var.id);
  for (Expr nested : inside)
    if (!moves_with(nested, own)) emit(nested, block);
  reduce.body = loop::bind(reduce.body, done_);

  Expr result;
  const bool is_position = reduce.op == ReduceOp::argmax || reduce.op == ReduceOp::argmin;
  collapse(kernel_, reduce);
  const bool gathers = lanes_of_thread_ > 0;
  if (gathers && !is_position) put_lanes_last(reduce);
  const bool is_worth_lanes = gathers || reads_evenly(reduce.body, reduce.vars.back()) ||
                              count_operations({&reduce.body, 1}) >= kManyOperations;
  const bool is_vectorizable = !contains_reduction({&reduce.body, 1}) && is_worth_lanes &&
                               loop::as_size(reduce.extents.back()).has_value();
  if (is_position) {
    result = is_vectorizable ? emit_position_vectorized(reduce, block)
                             : emit_position(reduce, block, nullptr);
  } else {
    result = is_vectorizable ? emit_vectorized(reduce, e->dtype, kept_of(e, reduce), block)
                             : emit_serial(reduce, e->dtype, block);
  }
  Var name = kernel_.add_var({"total", loop::VarKind::let, e->dtype, 1, INT64_MIN, INT64_MAX});
  block.push_back({Let{name, result}});
  Expr read = kernel_.pool->var(name, e->dtype);
  done_.emplace(e.node(), read);
  return read;
}

void ReductionEmitter::keep(const RowValue& value, Var inner, loop::BufferRef buffer) {
  kept_[value.reduce.node()].push_back({value.first, value.again, inner, buffer});
}

// What the reduction leaves behind, as its body now computes it; who computes it again reads that.
std::vector<ReductionEmitter::KeptValue> ReductionEmitter::kept_of(Expr e, const Reduce& reduce) {
  const auto found = kept_.find(e.node());
  if (found == kept_.end() || reduce.vars != as_reduce(e)->vars) return {};
  std::vector<KeptValue> kept = found->second;
  for (KeptValue& value : kept) {
    value.first = loop::bind(value.first, done_);
    done_.emplace(
        value.again.node(),
        kernel_.pool->load(value.buffer, kernel_.pool->var(value.inner), value.again->dtype));
  }
  return kept;
}

Expr ReductionEmitter::body_at(const Reduce& reduce, const std::vector<KeptValue>& kept, Expr at,
                               const loop::VectorAxis& axis, Block& block) {
  const auto moved = [&](Expr e) { return loop::substitute(e, reduce.vars.back(), at); };
  loop::Bindings bound;
  for (const KeptValue& value : kept) {
    const Expr first = moved(value.first);
    const Var name = kernel_.add_var(
        {"kept", loop::VarKind::let, first->dtype, axis.lanes, INT64_MIN, INT64_MAX});
    const Expr read = kernel_.pool->var(name, first->dtype, axis.lanes);
    block.push_back({Let{name, loop::vectorize(first, axis)}});
    block.push_back({loop::Store{value.buffer, at, read, axis.mask, false}});
    bound.emplace(first.node(), read);
  }
  return loop::vectorize(moved(reduce.body), axis, bound);
}

// Makes the variable that is best as lanes the last.
void ReductionEmitter::put_lanes_last(Reduce& reduce) const {
  const auto at = static_cast<long>(cheapest_lanes(reduce, lanes_of_thread_).index);
  std::rotate(reduce.vars.begin() + at, reduce.vars.begin() + at + 1, reduce.vars.end());
  std::rotate(reduce.extents.begin() + at, reduce.extents.begin() + at + 1, reduce.extents.end());
}

Block ReductionEmitter::add_up(const Reduce& reduce, size_t count, const Accumulator& accumulator,
                               const Dim& body_chain, const AccumulateBody& body) {
  std::vector<AccumulateLoop> loops;
  for (size_t i = 0; i < count; ++i)
    loops.push_back({reduce.vars[i], kernel_.pool->integer(0), reduce.extents[i], 1});
  return accumulate(kernel_, accumulator, std::move(loops), body_chain, body);
}

Expr ReductionEmitter::emit_vectorized(const Reduce& reduce, DType dtype,
                                       const std::vector<KeptValue>& kept, Block& block) {
  const Dim extent = *loop::as_size(reduce.extents.back());
  constexpr int64_t kManyVectors = 2 * kAccumulators;
  const DimRange vectors = Dim::floor_div(extent, lanes_).bounds(kernel_.symbols);
  const bool has_many = vectors.min.value_or(0) >= kManyVectors;
  if (has_many || vectors.max.value_or(INT64_MAX) < kManyVectors) {
    const int64_t count = has_many ? kAccumulators : 1;
    return loop::reduce_lanes(reduce.op, emit_lane_totals(reduce, dtype, kept, count, block));
  }
  const Accumulator total = start_accumulator(kernel_, {reduce.op, dtype, lanes_}, block);
  const auto arm = [&](int64_t count) {
    Block inside;
    const Expr lanes = emit_lane_totals(reduce, dtype, kept, count, inside);
    inside.push_back({SetReg{total.regs, {}, lanes}});
    return inside;
  };
  loop::Pool& pool = *kernel_.pool;
  const Expr is_long = loop::le(pool.integer(kManyVectors * lanes_), pool.size(extent));
  block.push_back({loop::If{is_long, arm(kAccumulators), arm(1)}});
  return loop::reduce_lanes(reduce.op, read(kernel_, total, pool.integer(0)));
}

Expr ReductionEmitter::emit_lane_totals(const Reduce& reduce, DType dtype,
                                        const std::vector<KeptValue>& kept, int64_t count,
                                        Block& block) {
  loop::Pool& pool = *kernel_.pool;
  const Var var = reduce.vars.back();
  const Dim extent = *loop::as_size(reduce.extents.back());
  const Accumulator acc = start_accumulator(kernel_, {reduce.op, dtype, lanes_, count}, block);
  const auto round_down = [&](int64_t step) { return Dim::floor_div(extent, step) * Dim(step); };
  const Dim whole = round_down(lanes_), unrolled = count > 1 ? round_down(lanes_ * count) : Dim(0);
  const Expr zero = pool.integer(0);

  const auto emit_unrolled = [&](const Accumulator& into) -> Block {
    Var u = kernel_.add_var({"u", loop::VarKind::loop, DType::i64, 1, 0, count - 1});
    // The lane variable is the loop's plus u vectors.
    const Expr moved = pool.var(var) + pool.var(u) * pool.integer(lanes_);
    Block step;
    const Expr body = body_at(reduce, kept, moved, {var, lanes_, {}}, step);
    step.push_back(combine_into(kernel_, into, pool.var(u), body));
    Block unroll;
    unroll.push_back({For{u, zero, pool.integer(count), 1, LoopKind::unroll, std::move(step)}});
    return unroll;
  };
  const auto emit_whole = [&](const Accumulator& into) -> Block {
    Block step;
    const Expr body = body_at(reduce, kept, pool.var(var), {var, lanes_, {}}, step);
    step.push_back(combine_into(kernel_, into, zero, body));
    return step;
  };
  const auto emit_row = [&](const Accumulator& into) -> Block {
    Block row;
    if (unrolled != Dim(0))
      row = accumulate(kernel_, into, {{var, zero, pool.size(unrolled), lanes_ * count}}, 1,
                       emit_unrolled);
    if (whole != unrolled) {
      const int64_t most = extent.is_const() ? INT64_MAX : 2 * kAccumulators;
      const AccumulateLoop rest{var, pool.size(unrolled), pool.size(whole), lanes_, most};
      for (Stmt& stmt : accumulate(kernel_, into, {rest}, 1, emit_whole))
        row.push_back(std::move(stmt));
    }
    add_rest(reduce, row, [&](Var tail, Expr mask, Block& rest) {
      const Expr body = body_at(reduce, kept, pool.var(tail), {tail, lanes_, mask}, rest);
      rest.push_back(combine_into(kernel_, into, zero, body, mask));
    });
    return row;
  };
  Dim row_chain = Dim::floor_div(extent, lanes_ * count) + Dim(1);
  if (row_chain.is_const()) row_chain = std::min(row_chain.value(), kLongestChain);
  for (Stmt& stmt : add_up(reduce, reduce.vars.size() - 1, acc, row_chain, emit_row))
    block.push_back(std::move(stmt));
  Expr total = read(kernel_, acc, zero);
  for (int64_t i = 1; i < count; ++i)
    total = loop::combine(reduce.op, total, read(kernel_, acc, pool.integer(i)));
  return total;
}

void ReductionEmitter::add_rest(const Reduce& reduce, Block& block,
                                const std::function<void(Var, Expr, Block&)>& body) {
  loop::Pool& pool = *kernel_.pool;
  const Dim extent = *loop::as_size(reduce.extents.back());
  const Dim whole = Dim::floor_div(extent, lanes_) * Dim(lanes_);
  if (whole == extent) return;
  const Var tail =
      kernel_.add_var({kernel_.vars[reduce.vars.back().id].name + "_tail", loop::VarKind::let});
  kernel_.set_extent(tail, extent);
  const Expr mask = loop::lt(pool.ramp(pool.integer(0), 1, lanes_),
                             loop::splat(pool.size(extent - whole), lanes_));
  Block rest;
  rest.push_back({Let{tail, pool.size(whole)}});
  body(tail, mask, rest);
  if (!extent.is_const()) {
    block.push_back({loop::If{loop::lt(pool.size(whole), pool.size(extent)), std::move(rest), {}}});
    return;
  }
  for (Stmt& stmt : rest) block.push_back(std::move(stmt));
}

Expr ReductionEmitter::emit_serial(const Reduce& reduce, DType dtype, Block& block) {
  const Expr zero = kernel_.pool->integer(0);
  const Accumulator acc = start_accumulator(kernel_, {reduce.op, dtype}, block);
  const auto step = [&](const Accumulator& into) {
    Block inside;
    const Expr body = lower(reduce.body, inside);
    inside.push_back(combine_into(kernel_, into, zero, body));
    return inside;
  };
  for (Stmt& stmt : add_up(reduce, reduce.vars.size(), acc, 1, step))
    block.push_back(std::move(stmt));
  return read(kernel_, acc, zero);
}

// Makes `at` the position and `value` the best where it is better, in the lanes of `mask` (null:
// all). NaN is better than any number, and the first best stays.
void ReductionEmitter::keep_better(const Accumulator& best, const Accumulator& position, Expr value,
                                   Expr at, Expr mask, Block& block) {
  const Expr zero = kernel_.pool->integer(0), old = read(kernel_, best, zero),
             old_position = read(kernel_, position, zero);
  Expr better = best.op == ReduceOp::max ? loop::lt(old, value) : loop::lt(value, old);
  if (is_float(best.dtype))
    better =
        loop::logical_or(better, loop::logical_and(loop::ne(value, value), loop::eq(old, old)));
  if (mask) better = loop::logical_and(mask, better);
  // The position first: both updates read the old best.
  block.push_back({SetReg{position.regs, {}, loop::select(better, at, old_position)}});
  block.push_back({SetReg{best.regs, {}, loop::select(better, value, old)}});
}

// Row-major position in the reduction of its variables' values, the last of which is `last`.
Expr ReductionEmitter::position_of(const Reduce& reduce, Expr last) {
  Expr at = kernel_.pool->integer(0);
  for (size_t i = 0; i + 1 < reduce.vars.size(); ++i)
    at = at * reduce.extents[i] + kernel_.pool->var(reduce.vars[i]);
  return at * reduce.extents.back() + last;
}

// Position of the first best element: scalar, or one answer per lane of the axis.
Expr ReductionEmitter::emit_position(const Reduce& reduce, Block& block,
                                     const loop::VectorAxis* axis) {
  const int lanes = axis ? axis->lanes : 1;
  const Accumulator best =
      start_accumulator(kernel_, {order_of(reduce), reduce.body->dtype, lanes}, block);
  const Accumulator position =
      start_accumulator(kernel_, {ReduceOp::sum, DType::i64, lanes}, block);
  Block inside;
  Expr body = reduce.body;
  if (axis) {
    const loop::Bindings bound = lower_lanes({&body, 1}, *axis, inside);
    body = loop::vectorize(body, *axis, bound);
  } else {
    body = lower(body, inside);
  }
  const Expr at = position_of(reduce, kernel_.pool->var(reduce.vars.back()));
  keep_better(best, position, body, loop::splat(at, lanes), {}, inside);
  for (Stmt& stmt :
       add_up(reduce, reduce.vars.size(), best, 1, [&](const auto&) { return inside; }))
    block.push_back(std::move(stmt));
  return read(kernel_, position, kernel_.pool->integer(0));
}

// The same along the reduction's own last variable: the best of every lane, and then the first of
// those.
Expr ReductionEmitter::emit_position_vectorized(const Reduce& reduce, Block& block) {
  loop::Pool& pool = *kernel_.pool;
  const Var var = reduce.vars.back();
  const Expr zero = pool.integer(0);
  const Accumulator best =
      start_accumulator(kernel_, {order_of(reduce), reduce.body->dtype, lanes_}, block);
  const Accumulator position =
      start_accumulator(kernel_, {ReduceOp::sum, DType::i64, lanes_}, block);
  const Dim whole = Dim::floor_div(*loop::as_size(reduce.extents.back()), lanes_) * Dim(lanes_);
  const auto step = [&](Var lane, Expr mask, Block& into) {
    const Expr body =
        loop::vectorize(loop::substitute(reduce.body, var, pool.var(lane)), {lane, lanes_, mask});
    keep_better(best, position, body, pool.ramp(position_of(reduce, pool.var(lane)), 1, lanes_),
                mask, into);
  };
  const auto row = [&](const Accumulator&) {
    Block inside;
    if (whole != Dim(0)) {
      Block vectors;
      step(var, {}, vectors);
      inside.push_back(
          {For{var, zero, pool.size(whole), lanes_, LoopKind::serial, std::move(vectors)}});
    }
    add_rest(reduce, inside, step);
    return inside;
  };
  for (Stmt& stmt : add_up(reduce, reduce.vars.size() - 1, best, 1, row))
    block.push_back(std::move(stmt));
  const Expr bests = read(kernel_, best, zero);
  const Expr top = loop::splat(loop::reduce_lanes(best.op, bests), lanes_);
  Expr is_top = loop::eq(bests, top);
  if (is_float(best.dtype)) is_top = loop::logical_or(is_top, loop::ne(bests, bests));
  const Expr none = loop::splat(pool.integer(INT64_MAX), lanes_);
  return loop::reduce_lanes(ReduceOp::min,
                            loop::select(is_top, read(kernel_, position, zero), none));
}

Expr ReductionEmitter::emit_lanes(Expr e, const loop::VectorAxis& axis, loop::Bindings& bound,
                                  Block& block) {
  if (auto found = bound.find(e.node()); found != bound.end()) return found->second;
  const Reduce& reduce = *as_reduce(e);
  Expr result;
  if (free_vars(e).count(axis.var.id) == 0) {
    result = emit(e, block);
  } else if (reduce.op == ReduceOp::argmax || reduce.op == ReduceOp::argmin) {
    result = emit_position(reduce, block, &axis);
  } else {
    const Expr zero = kernel_.pool->integer(0);
    const Accumulator acc = start_accumulator(kernel_, {reduce.op, e->dtype, axis.lanes}, block);
    const auto step = [&](const Accumulator& into) {
      Block inside;
      loop::Bindings nested = bound;
      for (Expr inner : outermost_reductions({&reduce.body, 1}))
        emit_lanes(inner, axis, nested, inside);
      Expr vector = loop::vectorize(reduce.body, axis, nested);
      inside.push_back(combine_into(kernel_, into, zero, vector));
      return inside;
    };
    for (Stmt& stmt : add_up(reduce, reduce.vars.size(), acc, 1, step))
      block.push_back(std::move(stmt));
    result = read(kernel_, acc, zero);
  }
  bound.emplace(e.node(), result);
  return result;
}

}  // namespace lathe
