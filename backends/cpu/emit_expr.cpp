// Expressions: dispatch to arithmetic, conversions and memory.
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

}  // namespace

Placed KernelEmitter::emit_node(Expr e) {
  if (as<loop::IntConst>(e) || as<loop::FloatConst>(e)) return emit_constant(e);
  if (auto* read = as<loop::VarRead>(e)) {
    Value* v = vars_[read->var.id].value;
    if (v) return {v, values_.level_of(values_.slot(read->var))};
    return {fail(fmt::format("variable '{}' has no value here (sizes must be bound)",
                             kernel_.vars[read->var.id].name)),
            0};
  }
  if (auto* read = as<loop::RegRead>(e)) {
    llvm::WeakTrackingVH* element = reg_element(read->array, read->indices);
    if (!element) return {llvm::PoisonValue::get(type(e->dtype, e->lanes)), 0};
    return {*element, values_.level_of(values_.slot(read->array))};
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
  int level = values_.placement(base.level, true);
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
  level = values_.placement(level, e->lanes > 1);
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
    Value* operator()(const loop::PairDot&) const { return k.pair_dot(x[0], x[1], x[2]); }
    Value* operator()(const loop::Select&) const {
      return k.builder_.CreateSelect(x[0], x[1], x[2]);
    }
    Value* operator()(const loop::Cast& n) const { return k.cast(n.x->dtype, e->dtype, x[0]); }
    Value* operator()(const loop::Bitcast& n) const {
      return k.bitcast(n.x->dtype, e->dtype, e->lanes, x[0]);
    }
    Value* operator()(const loop::Splat&) const {
      return k.builder_.CreateVectorSplat(static_cast<unsigned>(e->lanes), x[0]);
    }
    Value* operator()(const loop::Shuffle& n) const {
      return k.builder_.CreateShuffleVector(x[0], x[1], n.lanes);
    }
    Value* operator()(const loop::ReduceLanes& n) const {
      return k.reduce_lanes(n.op, n.x->dtype, x[0]);
    }
    Value* operator()(const loop::Reduce&) const {
      return k.fail("a reduce expression was not scheduled into loops");
    }
    Value* operator()(const loop::Size&) const { return k.fail("a size was not lifted"); }
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
