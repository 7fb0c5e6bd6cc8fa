// Chains of additions and how they are cut (see accumulate.h).
#include "ir/templates/accumulate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/templates/ceil_div.h"

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
Dim trips(const AccumulateLoop& l) {
  const std::optional<Dim> lo = loop::as_size(l.lo), hi = loop::as_size(l.hi);
  return lo && hi ? ceil_div(*hi - *lo, l.step) : Dim(0);
}

// No more than one above kLongestChain, where it is a number.
Dim num_additions(const std::vector<AccumulateLoop>& loops, Dim chain) {
  for (const AccumulateLoop& l : loops) {
    const Dim count = trips(l);
    chain = chain * (count.is_const() ? Dim(std::max<int64_t>(count.value(), 1)) : count);
    if (chain.is_const()) chain = std::min(chain.value(), kLongestChain + 1);
  }
  return chain;
}

int64_t most(const loop::Kernel& kernel, const Dim& size) {
  return size.bounds(kernel.symbols).max.value_or(INT64_MAX);
}

// The same where only the most is known of each size.
int64_t most_additions(const loop::Kernel& kernel, const std::vector<AccumulateLoop>& loops,
                       const Dim& body_chain) {
  int64_t chain = std::min(most(kernel, body_chain), kLongestChain + 1);
  for (const AccumulateLoop& l : loops) {
    const int64_t count = std::min({most(kernel, trips(l)), l.most, kLongestChain + 1});
    chain = std::min(chain * std::max<int64_t>(count, 1), kLongestChain + 1);
  }
  return chain;
}

// Cuts `inner`, of at most `most` iterations, into blocks of `count`: what remains runs over one
// block, the result over the blocks.
AccumulateLoop split(loop::Kernel& kernel, AccumulateLoop& inner, int64_t most, int64_t count) {
  loop::Pool& pool = *kernel.pool;
  loop::VarInfo info = kernel.vars[inner.var.id];
  info.name += "_block";
  const Var var = kernel.add_var(info);
  const AccumulateLoop outer{var, inner.lo, inner.hi, inner.step * count, ceil_div(most, count)};
  const bool is_even = Dim::mod(trips(inner), count) == Dim(0);
  inner.lo = pool.var(var);
  inner.hi = pool.var(var) + pool.integer(outer.step);
  if (!is_even) inner.hi = loop::min(inner.hi, outer.hi);
  return outer;
}

// Outermost first; each group has accumulators of its own.
using Groups = std::vector<std::vector<AccumulateLoop>>;

// A symbolic loop has blocks for the most that it may be, up to kUncounted: beyond that its
// outermost chain is longer than a block.
constexpr int64_t kUncounted = int64_t{1} << 18;

Groups group(loop::Kernel& kernel, std::vector<AccumulateLoop> loops, const Dim& body_chain) {
  int64_t chain = body_chain.is_const() ? body_chain.value() : kLongestChain;
  Groups groups(1);
  while (!loops.empty()) {
    AccumulateLoop next = loops.back();
    loops.pop_back();
    const Dim size = trips(next);
    const int64_t count =
        size.is_const() ? size.value() : std::min({most(kernel, size), next.most, kUncounted});
    const int64_t room = kSumBlock / chain;
    if (count > room) {
      if (room > 1) {
        const AccumulateLoop outer = split(kernel, next, count, room);
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
                 std::vector<AccumulateLoop> loops, const Dim& body_chain,
                 const AccumulateBody& body) {
  const bool rounds = accumulator.op == loop::ReduceOp::sum && is_float(accumulator.dtype);
  const auto emit = [&](auto&& self, const Groups& groups, size_t g,
                        const Accumulator& into) -> Block {
    if (g + 1 == groups.size()) return wrap(groups[g], body(into));
    Block block;
    const Accumulator own = start_accumulator(kernel, into, block);
    for (Stmt& stmt : self(self, groups, g + 1, own)) block.push_back(std::move(stmt));
    for (int64_t i = 0; i < into.count; ++i) {
      const Expr at = kernel.pool->integer(i);
      block.push_back(combine_into(kernel, into, at, read(kernel, own, at)));
    }
    return wrap(groups[g], std::move(block));
  };
  const auto few = [&] { return emit(emit, Groups{loops}, 0, accumulator); };
  const auto many = [&] { return emit(emit, group(kernel, loops, body_chain), 0, accumulator); };
  if (!rounds || most_additions(kernel, loops, body_chain) <= kLongestChain) return few();
  const Dim additions = num_additions(loops, body_chain);
  if (additions.is_const()) return additions.value() <= kLongestChain ? few() : many();
  Block block;
  loop::Pool& pool = *kernel.pool;
  block.push_back(
      {loop::If{loop::le(pool.size(additions), pool.integer(kLongestChain)), few(), many()}});
  return block;
}

}  // namespace lathe
