// Emits the loops of reduce expressions. Used by the generic schedule and by templates with row
// statistics.
#pragma once
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/accumulate.h"
#include "ir/templates/row_values.h"

namespace lathe {

bool contains_reduction(std::span<const loop::Expr> exprs);
// Some reduction in them moves with `var`.
bool reductions_depend_on(std::span<const loop::Expr> exprs, loop::Var var);

class ReductionEmitter {
 public:
  // With the lanes that a thread has, where threads share vectors, reductions are vectorised along
  // whichever of their own variables is cheapest, whatever its accesses.
  ReductionEmitter(loop::Kernel& kernel, int lanes, int64_t lanes_of_thread = 0)
      : kernel_(kernel), lanes_(lanes), lanes_of_thread_(lanes_of_thread) {}

  // `e` without reduce expressions; their loops are appended to `block`, each vectorised along its
  // own last variable where its accesses allow. Equal reductions are computed once, also those of
  // expressions that were lowered before.
  loop::Expr lower(loop::Expr e, loop::Block& block);

  // When the value's reduction is lowered along its own variable, it leaves each element in
  // `buffer`, where `again` then reads it, along `inner`.
  void keep(const RowValue& value, loop::Var inner, loop::BufferRef buffer);

  // Lowers only those reductions that move with none of `vars`.
  std::vector<loop::Expr> hoist_invariant(std::vector<loop::Expr> exprs,
                                          const std::vector<loop::Var>& vars, loop::Block& block);

  // Lowers the reductions of `exprs` over lanes of `axis`: one accumulator lane for each; what each
  // is bound to.
  loop::Bindings lower_lanes(std::span<const loop::Expr> exprs, const loop::VectorAxis& axis,
                             loop::Block& block);

 private:
  struct KeptValue {
    loop::Expr first, again;
    loop::Var inner;
    loop::BufferRef buffer;
  };

  loop::Expr emit(loop::Expr reduce, loop::Block& block);
  loop::Expr emit_vectorized(const loop::Reduce& reduce, DType dtype,
                             const std::vector<KeptValue>& kept, loop::Block& block);
  // Lanes of its total, from so many vectors of accumulators.
  loop::Expr emit_lane_totals(const loop::Reduce& reduce, DType dtype,
                              const std::vector<KeptValue>& kept, int64_t count,
                              loop::Block& block);
  // `body` at the masked rest of the last loop behind whole vectors, where it has one.
  void add_rest(const loop::Reduce& reduce, loop::Block& block,
                const std::function<void(loop::Var tail, loop::Expr mask, loop::Block&)>& body);
  std::vector<KeptValue> kept_of(loop::Expr e, const loop::Reduce& reduce);
  // The body over lanes of `axis`, its last variable being `at`; what is kept is stored.
  loop::Expr body_at(const loop::Reduce& reduce, const std::vector<KeptValue>& kept, loop::Expr at,
                     const loop::VectorAxis& axis, loop::Block& block);
  loop::Expr emit_serial(const loop::Reduce& reduce, DType dtype, loop::Block& block);
  loop::Expr emit_position(const loop::Reduce& reduce, loop::Block& block,
                           const loop::VectorAxis* axis);
  loop::Expr emit_position_vectorized(const loop::Reduce& reduce, loop::Block& block);
  void keep_better(const Accumulator& best, const Accumulator& position, loop::Expr value,
                   loop::Expr at, loop::Expr mask, loop::Block& block);
  loop::Expr position_of(const loop::Reduce& reduce, loop::Expr last);
  loop::Expr emit_lanes(loop::Expr reduce, const loop::VectorAxis& axis, loop::Bindings& bound,
                        loop::Block& block);
  void put_lanes_last(loop::Reduce& reduce) const;
  // The first `count` loops of the reduction around `body`, as accumulate() has them.
  loop::Block add_up(const loop::Reduce& reduce, size_t count, const Accumulator& accumulator,
                     const Dim& body_chain, const AccumulateBody& body);

  loop::Kernel& kernel_;
  int lanes_;
  int64_t lanes_of_thread_;
  loop::Bindings done_;
  std::unordered_map<const loop::ExprNode*, std::vector<KeptValue>> kept_;  // by reduction
};

}  // namespace lathe
