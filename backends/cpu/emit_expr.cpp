// Expressions: memoisation, placement, and dispatch to arithmetic, conversions and memory.
//
// Placement. An operator goes to the deepest scope among its operands, so what does not move with
// a loop is computed before it. Exceptions: nothing leaves an if branch (work that may not be
// wanted), loads do not leave a loop that may run zero times (kernel_emitter's `always_runs`), and
// vectors leave innermost loops only (they would occupy registers across the loops inside).
#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "backends/cpu/kernel_emitter.h"

namespace lathe::cpu {

using llvm::Value;
using loop::ExprNode;

namespace {

template <class T>
const T* as(Expr e) {
  return std::get_if<T>(&e->kind);
}

bool is_leaf(Expr e) {
  return as<loop::IntConst>(e) || as<loop::FloatConst>(e) || as<loop::VarRead>(e) ||
         as<loop::RegRead>(e);
}

}  // namespace

Placed KernelEmitter::emit(Expr e) {
  if (is_leaf(e)) return emit_node(e);
  auto found = memo_.find(e.node());
  if (found != memo_.end()) {
    const Memo& memo = found->second;
    bool is_valid = e->lanes == 1 || memo.time >= last_loop_end_;
    for (uint32_t read : slots_of(e)) is_valid = is_valid && slots_[read].changed <= memo.time;
    if (is_valid) return memo.placed;
  }
  Placed placed = emit_node(e);
  memo_[e.node()] = {placed, clock_};
  scopes_[static_cast<size_t>(placed.level)].memos.push_back(e.node());
  return placed;
}

// The slots whose change makes a value of `e` stale.
const std::vector<uint32_t>& KernelEmitter::slots_of(Expr e) {
  auto [entry, is_new] = reads_.try_emplace(e.node());
  std::vector<uint32_t>& list = entry->second;  // node-based map: stays valid below
  if (!is_new) return list;
  if (auto* read = as<loop::VarRead>(e)) list.push_back(static_cast<uint32_t>(slot(read->var)));
  if (auto* read = as<loop::RegRead>(e)) list.push_back(static_cast<uint32_t>(slot(read->array)));
  if (auto* load = as<loop::Load>(e)) list.push_back(static_cast<uint32_t>(slot(load->buffer)));
  for (Expr child : loop::children(e)) {
    const std::vector<uint32_t>& more = slots_of(child);
    list.insert(list.end(), more.begin(), more.end());
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

int KernelEmitter::placement(int level, bool is_vector) const {
  int depth = static_cast<int>(scopes_.size()) - 1;
  for (int d = depth; d > level; --d) {
    const Scope& scope = scopes_[static_cast<size_t>(d)];
    if (scope.is_if || (is_vector && !scope.is_leaf_loop)) return d;
  }
  return std::min(level, depth);
}

Placed KernelEmitter::emit_node(Expr e) {
  if (as<loop::IntConst>(e) || as<loop::FloatConst>(e)) return emit_constant(e);
  if (auto* read = as<loop::VarRead>(e)) {
    Value* v = vars_[read->var.id].value;
    if (v) return {v, slots_[slot(read->var)].level};
    return {fail(fmt::format("variable '{}' has no value here (sizes must be bound)",
                             kernel_.vars[read->var.id].name)),
            0};
  }
  if (auto* read = as<loop::RegRead>(e)) {
    llvm::WeakTrackingVH* element = reg_element(read->array, read->indices);
    if (!element) return {llvm::PoisonValue::get(type(e->dtype, e->lanes)), 0};
    return {*element, slots_[slot(read->array)].level};
  }
  if (as<loop::Load>(e)) return emit_load(e);
  if (as<loop::Ramp>(e)) return emit_ramp(e);
  if (auto compared = index_compare(e)) return *compared;
  return emit_operator(e);
}

Placed KernelEmitter::emit_constant(Expr e) const {
  llvm::Type* t = type(e->dtype, e->lanes);
  if (auto* number = as<loop::FloatConst>(e)) return {llvm::ConstantFP::get(t, number->value), 0};
  int64_t v = as<loop::IntConst>(e)->value;
  return {llvm::ConstantInt::get(t, static_cast<uint64_t>(v), true), 0};
}

Placed KernelEmitter::emit_ramp(Expr e) {
  const auto& ramp = *as<loop::Ramp>(e);
  Placed base = emit(ramp.base);
  int level = placement(base.level, true);
  return {at_level(level,
                   [&]() -> Value* {
                     std::vector<int64_t> steps;
                     for (int lane = 0; lane < e->lanes; ++lane)
                       steps.push_back(ramp.stride * lane);
                     auto* offsets = llvm::ConstantDataVector::get(
                         module_.getContext(),
                         llvm::ArrayRef<uint64_t>(reinterpret_cast<uint64_t*>(steps.data()),
                                                  steps.size()));
                     Value* splat =
                         builder_.CreateVectorSplat(static_cast<unsigned>(e->lanes), base.value);
                     return builder_.CreateAdd(splat, offsets);
                   }),
          level};
}

Placed KernelEmitter::emit_operator(Expr e) {
  std::vector<Value*> operands;
  int level = 0;
  for (Expr child : loop::children(e)) {
    Placed operand = emit(child);
    operands.push_back(operand.value);
    level = std::max(level, operand.level);
  }
  if (error_) return {llvm::PoisonValue::get(type(e->dtype, e->lanes)), 0};
  level = placement(level, e->lanes > 1);
  return {at_level(level, [&] { return build(e, operands); }), level};
}

Value* KernelEmitter::build(Expr e, llvm::ArrayRef<Value*> x) {
  struct Dispatch {
    KernelEmitter& k;
    Expr e;
    llvm::ArrayRef<Value*> x;
    Value* operator()(const loop::Unary& n) const { return k.unary(n.op, n.x->dtype, x[0]); }
    Value* operator()(const loop::Binary&) const { return k.binary(e, x[0], x[1]); }
    Value* operator()(const loop::Fma& n) const {
      if (!is_float(e->dtype)) return k.builder_.CreateAdd(k.builder_.CreateMul(x[0], x[1]), x[2]);
      Value* fused =
          k.builder_.CreateIntrinsic(llvm::Intrinsic::fma, {x[0]->getType()}, {x[0], x[1], x[2]});
      return k.round_half(n.a->dtype, fused);
    }
    Value* operator()(const loop::Select&) const {
      return k.builder_.CreateSelect(x[0], x[1], x[2]);
    }
    Value* operator()(const loop::Cast& n) const { return k.cast(n.x->dtype, e->dtype, x[0]); }
    Value* operator()(const loop::Bitcast& n) const {
      return k.bitcast(n.x->dtype, e->dtype, x[0]);
    }
    Value* operator()(const loop::Splat&) const {
      return k.builder_.CreateVectorSplat(static_cast<unsigned>(e->lanes), x[0]);
    }
    Value* operator()(const loop::ReduceLanes& n) const {
      return k.reduce_lanes(n.op, n.x->dtype, x[0]);
    }
    Value* operator()(const loop::Reduce&) const {
      return k.fail("a reduce expression was not scheduled into loops");
    }
    // Taken by emit_node.
    Value* operator()(const loop::IntConst&) const { return nullptr; }
    Value* operator()(const loop::FloatConst&) const { return nullptr; }
    Value* operator()(const loop::VarRead&) const { return nullptr; }
    Value* operator()(const loop::Load&) const { return nullptr; }
    Value* operator()(const loop::RegRead&) const { return nullptr; }
    Value* operator()(const loop::Ramp&) const { return nullptr; }
  };
  return std::visit(Dispatch{*this, e, x}, e->kind);
}

std::optional<int64_t> KernelEmitter::constant_of(Expr e) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value(e));
  if (!constant) return std::nullopt;
  return constant->getSExtValue();
}

}  // namespace lathe::cpu
