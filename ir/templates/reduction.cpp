// Loops for reduce expressions: vectorised along the reduction, or one accumulator lane per output.
#include "ir/templates/reduction.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/templates/collapse.h"

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

// Reductions of `e` that stand in no other reduction.
std::vector<Expr> outermost_reductions(Expr root) {
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
  visit(visit, root);
  return found;
}

// Every reduction, inner ones first.
std::vector<Expr> all_reductions(Expr root) {
  std::vector<Expr> found;
  loop::for_each(root, [&](Expr e) {
    if (as_reduce(e)) found.push_back(e);
  });
  return found;
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

}  // namespace

bool contains_reduction(Expr e) { return !outermost_reductions(e).empty(); }

bool reductions_depend_on(Expr e, Var var) {
  for (Expr reduce : all_reductions(e)) {
    if (free_vars(reduce).count(var.id) > 0) return true;
  }
  return false;
}

Expr ReductionEmitter::lower(Expr e, Block& block) {
  for (Expr reduce : outermost_reductions(e)) emit(reduce, block);
  return loop::bind(e, done_);
}

Expr ReductionEmitter::hoist_invariant(Expr e, const std::vector<Var>& vars, Block& block) {
  std::set<uint32_t> inner;
  for (Var var : vars) inner.insert(var.id);
  const std::vector<Expr> reductions = all_reductions(e);
  for (Expr reduce : reductions) {
    for (Var bound : as_reduce(reduce)->vars) inner.insert(bound.id);
  }
  for (Expr reduce : reductions) {
    bool is_invariant = true;
    for (uint32_t id : free_vars(reduce)) is_invariant = is_invariant && inner.count(id) == 0;
    if (is_invariant) emit(reduce, block);
  }
  return loop::bind(e, done_);
}

loop::Bindings ReductionEmitter::lower_lanes(Expr e, const loop::VectorAxis& axis, Block& block) {
  loop::Bindings bound;
  for (Expr reduce : outermost_reductions(e)) emit_lanes(reduce, axis, bound, block);
  return bound;
}

Expr ReductionEmitter::emit(Expr e, Block& block) {
  if (auto found = done_.find(e.node()); found != done_.end()) return found->second;
  Reduce reduce = *as_reduce(e);
  // Inner reductions that do not move with this one come first, once.
  std::set<uint32_t> own;
  for (Var var : reduce.vars) own.insert(var.id);
  for (Expr nested : all_reductions(reduce.body)) {
    bool is_invariant = true;
    for (uint32_t id : free_vars(nested)) is_invariant = is_invariant && own.count(id) == 0;
    for (Expr other : all_reductions(reduce.body)) {
      for (Var var : as_reduce(other)->vars) {
        is_invariant = is_invariant && free_vars(nested).count(var.id) == 0;
      }
    }
    if (is_invariant) emit(nested, block);
  }
  reduce.body = loop::bind(reduce.body, done_);

  Expr result;
  if (reduce.op == ReduceOp::argmax || reduce.op == ReduceOp::argmin) {
    result = emit_position(reduce, block, nullptr);
  } else {
    collapse(kernel_, reduce);
    const bool is_vectorizable = !contains_reduction(reduce.body) &&
                                 (gathers_ || reads_evenly(reduce.body, reduce.vars.back())) &&
                                 loop::as_int(reduce.extents.back()) != nullptr;
    result = is_vectorizable ? emit_vectorized(reduce, e->dtype, block)
                             : emit_serial(reduce, e->dtype, block);
  }
  Var name = kernel_.add_var({"total", loop::VarKind::let, e->dtype, 1, INT64_MIN, INT64_MAX});
  block.push_back({Let{name, result}});
  Expr read = kernel_.pool->var(name, e->dtype);
  done_.emplace(e.node(), read);
  return read;
}

loop::RegArray ReductionEmitter::accumulator(ReduceOp op, DType dtype, int lanes, int64_t count,
                                             Block& block) {
  loop::Pool& pool = *kernel_.pool;
  std::vector<int64_t> shape;
  if (count > 1) shape.push_back(count);
  loop::RegArray acc = kernel_.add_regs({"acc", dtype, lanes, shape});
  block.push_back({loop::DeclareRegs{acc}});
  Expr start = loop::splat(pool.number(loop::identity(op, dtype), dtype), lanes);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Expr> at;
    if (count > 1) at.push_back(pool.integer(i));
    block.push_back({SetReg{acc, at, start}});
  }
  return acc;
}

// The first `count` loops of the reduction around `inside`.
Block ReductionEmitter::wrap(const Reduce& reduce, size_t count, Block inside) {
  for (size_t i = count; i-- > 0;) {
    Block outer;
    outer.push_back({For{reduce.vars[i], kernel_.pool->integer(0), reduce.extents[i], 1,
                         LoopKind::serial, std::move(inside)}});
    inside = std::move(outer);
  }
  return inside;
}

Expr ReductionEmitter::emit_vectorized(const Reduce& reduce, DType dtype, Block& block) {
  loop::Pool& pool = *kernel_.pool;
  const Var var = reduce.vars.back();
  const int64_t extent = loop::as_int(reduce.extents.back())->value;
  const int64_t count = extent / lanes_ >= 2 * kAccumulators ? kAccumulators : 1;
  const loop::RegArray acc = accumulator(reduce.op, dtype, lanes_, count, block);
  auto reg = [&](Expr i) { return count > 1 ? std::vector<Expr>{i} : std::vector<Expr>{}; };
  auto read = [&](Expr i) { return pool.reg(acc, reg(i), dtype, lanes_); };
  auto step = [&](Expr i, const loop::VectorAxis& axis, Expr body) -> Stmt {
    Expr vector = loop::vectorize(body, axis);
    Expr next = loop::combine(reduce.op, read(i), vector);
    if (axis.mask) next = loop::select(axis.mask, next, read(i));
    return {SetReg{acc, reg(i), next}};
  };

  Block inside;
  const int64_t whole = extent / lanes_ * lanes_;
  const int64_t unrolled = count > 1 ? extent / (lanes_ * count) * (lanes_ * count) : 0;
  Expr zero = pool.integer(0);
  if (unrolled > 0) {
    Var u = kernel_.add_var({"u", loop::VarKind::loop, DType::i64, 1, 0, count - 1});
    Expr moved = pool.var(var) + pool.var(u) * pool.integer(lanes_);
    // The lane variable is the loop's plus u vectors: substitute, then vectorise along the loop's.
    Block body;
    body.push_back(step(pool.var(u), {var, lanes_, {}}, loop::substitute(reduce.body, var, moved)));
    Block unroll;
    unroll.push_back({For{u, zero, pool.integer(count), 1, LoopKind::unroll, std::move(body)}});
    inside.push_back({For{var, zero, pool.integer(unrolled), lanes_ * count, LoopKind::serial,
                          std::move(unroll)}});
  }
  if (whole > unrolled) {
    Block body;
    body.push_back(step(zero, {var, lanes_, {}}, reduce.body));
    inside.push_back({For{var, pool.integer(unrolled), pool.integer(whole), lanes_,
                          LoopKind::serial, std::move(body)}});
  }
  if (whole < extent) {
    Var tail = kernel_.add_var(
        {kernel_.vars[var.id].name + "_tail", loop::VarKind::let, DType::i64, 1, 0, extent - 1});
    inside.push_back({Let{tail, pool.integer(whole)}});
    Expr mask =
        loop::lt(pool.ramp(zero, 1, lanes_), loop::splat(pool.integer(extent - whole), lanes_));
    inside.push_back(
        step(zero, {tail, lanes_, mask}, loop::substitute(reduce.body, var, pool.var(tail))));
  }
  for (Stmt& stmt : wrap(reduce, reduce.vars.size() - 1, std::move(inside)))
    block.push_back(std::move(stmt));
  Expr total = read(zero);
  for (int64_t i = 1; i < count; ++i)
    total = loop::combine(reduce.op, total, read(pool.integer(i)));
  return loop::reduce_lanes(reduce.op, total);
}

Expr ReductionEmitter::emit_serial(const Reduce& reduce, DType dtype, Block& block) {
  loop::Pool& pool = *kernel_.pool;
  const loop::RegArray acc = accumulator(reduce.op, dtype, 1, 1, block);
  Block inside;
  Expr body = lower(reduce.body, inside);
  inside.push_back({SetReg{acc, {}, loop::combine(reduce.op, pool.reg(acc, {}, dtype), body)}});
  for (Stmt& stmt : wrap(reduce, reduce.vars.size(), std::move(inside)))
    block.push_back(std::move(stmt));
  return pool.reg(acc, {}, dtype);
}

// Position of the first best element; NaN is better than any number. Scalar, or one answer per
// lane.
Expr ReductionEmitter::emit_position(const Reduce& reduce, Block& block,
                                     const loop::VectorAxis* axis) {
  loop::Pool& pool = *kernel_.pool;
  const int lanes = axis ? axis->lanes : 1;
  const DType dtype = reduce.body->dtype;
  const ReduceOp order = reduce.op == ReduceOp::argmax ? ReduceOp::max : ReduceOp::min;
  const loop::RegArray best = accumulator(order, dtype, lanes, 1, block);
  const loop::RegArray position = accumulator(ReduceOp::sum, DType::i64, lanes, 1, block);
  Block inside;
  Expr body = reduce.body;
  if (axis) {
    loop::Bindings bound = lower_lanes(body, *axis, inside);
    body = loop::vectorize(body, *axis, bound);
  } else {
    body = lower(body, inside);
  }
  Expr at = pool.integer(0);
  for (size_t i = 0; i < reduce.vars.size(); ++i)
    at = at * reduce.extents[i] + pool.var(reduce.vars[i]);
  Expr old = pool.reg(best, {}, dtype, lanes);
  Expr better = order == ReduceOp::max ? loop::lt(old, body) : loop::lt(body, old);
  if (is_float(dtype)) {
    better = loop::logical_or(better, loop::logical_and(loop::ne(body, body), loop::eq(old, old)));
  }
  Expr old_position = pool.reg(position, {}, DType::i64, lanes);
  // The position first: both updates read the old best.
  inside.push_back(
      {SetReg{position, {}, loop::select(better, loop::splat(at, lanes), old_position)}});
  inside.push_back({SetReg{best, {}, loop::select(better, body, old)}});
  for (Stmt& stmt : wrap(reduce, reduce.vars.size(), std::move(inside)))
    block.push_back(std::move(stmt));
  return pool.reg(position, {}, DType::i64, lanes);
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
    const loop::RegArray acc = accumulator(reduce.op, e->dtype, axis.lanes, 1, block);
    Block inside;
    loop::Bindings nested = bound;
    for (Expr inner : outermost_reductions(reduce.body)) emit_lanes(inner, axis, nested, inside);
    Expr vector = loop::vectorize(reduce.body, axis, nested);
    Expr read = kernel_.pool->reg(acc, {}, e->dtype, axis.lanes);
    inside.push_back({SetReg{acc, {}, loop::combine(reduce.op, read, vector)}});
    for (Stmt& stmt : wrap(reduce, reduce.vars.size(), std::move(inside)))
      block.push_back(std::move(stmt));
    result = read;
  }
  bound.emplace(e.node(), result);
  return result;
}

}  // namespace lathe
