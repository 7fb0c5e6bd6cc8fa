// Chains of additions and how they are cut (see accumulate.h).
#include "ir/templates/accumulate.h"

#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Stmt;
using loop::Var;

std::vector<Expr> register_index(const Accumulator& accumulator, Expr i) {
  return accumulator.count > 1 ? std::vector<Expr>{i} : std::vector<Expr>{};
}

// Iterations; 0 when they are not known.
int64_t trips(const AccumulateLoop& l) {
  const auto *lo = loop::as_int(l.lo), *hi = loop::as_int(l.hi);
  return lo && hi ? (hi->value - lo->value + l.step - 1) / l.step : 0;
}

// No more than one above kLongestChain.
int64_t num_additions(const std::vector<AccumulateLoop>& loops, int64_t chain) {
  for (const AccumulateLoop& l : loops)
    chain = std::min(chain * std::max<int64_t>(trips(l), 1), kLongestChain + 1);
  return chain;
}

// Cuts `inner` into blocks of `count` iterations: what remains runs over one block, the result over
// the blocks.
AccumulateLoop split(loop::Kernel& kernel, AccumulateLoop& inner, int64_t count) {
  loop::Pool& pool = *kernel.pool;
  loop::VarInfo info = kernel.vars[inner.var.id];
  info.name += "_block";
  const Var var = kernel.add_var(info);
  const AccumulateLoop outer{var, inner.lo, inner.hi, inner.step * count};
  const bool is_even = trips(inner) % count == 0;
  inner.lo = pool.var(var);
  inner.hi = pool.var(var) + pool.integer(outer.step);
  if (!is_even) inner.hi = loop::min(inner.hi, outer.hi);
  return outer;
}

// Outermost first; each group has accumulators of its own.
using Groups = std::vector<std::vector<AccumulateLoop>>;

Groups group(loop::Kernel& kernel, std::vector<AccumulateLoop> loops, int64_t chain) {
  if (num_additions(loops, chain) <= kLongestChain) return {std::move(loops)};
  Groups groups(1);
  while (!loops.empty()) {
    AccumulateLoop next = loops.back();
    loops.pop_back();
    const int64_t count = trips(next), room = kSumBlock / chain;
    if (count > room) {
      if (room > 1) {
        const AccumulateLoop outer = split(kernel, next, room);
        groups.back().insert(groups.back().begin(), next);
        next = outer;
      }
      loops.push_back(next);
      groups.emplace_back();
      chain = 1;
      continue;
    }
    groups.back().insert(groups.back().begin(), next);
    chain *= std::max<int64_t>(count, 1);
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

Block wrap(const std::vector<AccumulateLoop>& loops, Block inside) {
  for (size_t i = loops.size(); i-- > 0;) {
    const AccumulateLoop& l = loops[i];
    Block outer;
    outer.push_back({For{l.var, l.lo, l.hi, l.step, LoopKind::serial, std::move(inside)}});
    inside = std::move(outer);
  }
  return inside;
}

}  // namespace

Accumulator start_accumulator(loop::Kernel& kernel, Accumulator shape, Block& block) {
  loop::Pool& pool = *kernel.pool;
  const bool is_array = shape.count > 1;
  shape.regs =
      kernel.add_regs({"acc", shape.dtype, shape.lanes,
                       is_array ? std::vector<int64_t>{shape.count} : std::vector<int64_t>{}});
  block.push_back({loop::DeclareRegs{shape.regs}});
  const Expr start =
      loop::splat(pool.number(loop::identity(shape.op, shape.dtype), shape.dtype), shape.lanes);
  for (int64_t i = 0; i < shape.count; ++i)
    block.push_back({loop::SetReg{shape.regs, register_index(shape, pool.integer(i)), start}});
  return shape;
}

Expr read(loop::Kernel& kernel, const Accumulator& accumulator, Expr i) {
  return kernel.pool->reg(accumulator.regs, register_index(accumulator, i), accumulator.dtype,
                          accumulator.lanes);
}

Stmt combine_into(loop::Kernel& kernel, const Accumulator& accumulator, Expr i, Expr value,
                  Expr mask) {
  const Expr old = read(kernel, accumulator, i);
  Expr next = loop::combine(accumulator.op, old, value);
  if (mask) next = loop::select(mask, next, old);
  return {loop::SetReg{accumulator.regs, register_index(accumulator, i), next}};
}

Block accumulate(loop::Kernel& kernel, const Accumulator& accumulator,
                 std::vector<AccumulateLoop> loops, int64_t body_chain,
                 const AccumulateBody& body) {
  const bool rounds = accumulator.op == loop::ReduceOp::sum && is_float(accumulator.dtype);
  const Groups groups = rounds ? group(kernel, std::move(loops), body_chain) : Groups{loops};
  const auto emit = [&](auto&& self, size_t g, const Accumulator& into) -> Block {
    if (g + 1 == groups.size()) return wrap(groups[g], body(into));
    Block block;
    const Accumulator own = start_accumulator(kernel, into, block);
    for (Stmt& stmt : self(self, g + 1, own)) block.push_back(std::move(stmt));
    for (int64_t i = 0; i < into.count; ++i) {
      const Expr at = kernel.pool->integer(i);
      block.push_back(combine_into(kernel, into, at, read(kernel, own, at)));
    }
    return wrap(groups[g], std::move(block));
  };
  return emit(emit, 0, accumulator);
}

}  // namespace lathe
