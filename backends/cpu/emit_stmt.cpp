// Statements: loops, branches, register arrays.
//
// A serial loop is emitted rotated (body first, test at the end), behind a test of its own when it
// may run zero times. Every element of a register array that the body assigns gets a phi at the
// loop's head; those that turn out not to change are removed again.
#include <llvm/IR/Constants.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/kernel_emitter.h"

namespace lathe::cpu {

using llvm::BasicBlock;
using llvm::Value;
using loop::Block;
using loop::For;
using loop::If;
using loop::Let;
using loop::LoopKind;
using loop::RegArray;
using loop::SetReg;

namespace {

// The variable's values are multiples of this.
int64_t loop_divisor(Value* lo, int64_t step) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(lo);
  return constant ? std::gcd(constant->getSExtValue(), step) : 1;
}

}  // namespace

void KernelEmitter::set_counter(loop::Var counter, int64_t i) {
  VarValue& var = vars_[counter.id];
  var.value = builder_.getInt64(static_cast<uint64_t>(i));
  var.linear.reset();
  values_.touch(values_.slot(counter), 0);
}

void KernelEmitter::open_scope(llvm::Instruction* entry, placement::Scope scope) {
  values_.open(scope);
  entries_.push_back(entry);
}

void KernelEmitter::close_scope() {
  values_.close();
  entries_.pop_back();
}

void KernelEmitter::emit_loop(const For& loop) {
  const bool is_parallel = loop.kind == LoopKind::parallel;
  Value* lo = is_parallel ? parallel_lo_ : value(loop.lo);
  Value* hi = is_parallel ? parallel_hi_ : value(loop.hi);
  llvm::LLVMContext& context = module_.getContext();
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  BasicBlock* before = builder_.GetInsertBlock();
  const std::string& name = kernel_.vars[loop.var.id].name;
  BasicBlock* head = BasicBlock::Create(context, name, function);
  BasicBlock* exit = BasicBlock::Create(context, name + ".end", function);
  // Callers never pass an empty parallel range.
  Value* runs = is_parallel ? builder_.getTrue() : builder_.CreateICmpSLT(lo, hi);
  bool always_runs = llvm::isa<llvm::ConstantInt>(runs);  // the empty ones are written out
  llvm::Instruction* entry =
      always_runs ? builder_.CreateBr(head) : builder_.CreateCondBr(runs, head, exit);
  placement::Effects effects = placement::effects_of(loop.body);
  open_scope(entry, {!effects.has_loop, always_runs, false});
  builder_.SetInsertPoint(head);
  llvm::PHINode* index = builder_.CreatePHI(builder_.getInt64Ty(), 2, name);
  index->addIncoming(lo, before);
  VarValue& var = vars_[loop.var.id];
  var.value = index;
  var.divisor = loop_divisor(value(loop.lo), loop.step);
  var.linear.reset();
  values_.touch(values_.slot(loop.var), values_.depth());

  struct Carried {
    llvm::WeakTrackingVH* element;
    llvm::PHINode* phi;
    llvm::WeakTrackingVH before;
  };
  std::vector<Carried> carried;
  for (uint32_t id : effects.arrays)
    for (llvm::WeakTrackingVH& element : regs_[id]) {
      llvm::PHINode* phi = builder_.CreatePHI(element->getType(), 2);
      phi->addIncoming(element, before);
      carried.push_back({&element, phi, element});
      element = phi;
    }
  values_.note(effects);

  emit_block(loop.body);

  BasicBlock* latch = builder_.GetInsertBlock();
  Value* next = builder_.CreateNSWAdd(index, builder_.getInt64(static_cast<uint64_t>(loop.step)));
  index->addIncoming(next, latch);
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, hi), head, exit);
  close_scope();
  builder_.SetInsertPoint(exit);
  for (Carried& c : carried) c.phi->addIncoming(*c.element, latch);
  for (Carried& c : carried) {
    if (*c.element == c.phi) {  // unchanged; the handles of registers follow the replacement
      c.phi->replaceAllUsesWith(c.before);
      c.phi->eraseFromParent();
      continue;
    }
    if (always_runs) continue;
    llvm::PHINode* after = builder_.CreatePHI((*c.element)->getType(), 2);
    after->addIncoming(c.before, before);
    after->addIncoming(*c.element, latch);
    *c.element = after;
  }
  values_.note(effects);
}

void KernelEmitter::emit_stmt(const If& branch) {
  Value* condition = value(branch.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    emit_block(known->isOne() ? branch.then_body : branch.else_body);
    return;
  }
  llvm::LLVMContext& context = module_.getContext();
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  BasicBlock* blocks[2] = {BasicBlock::Create(context, "then", function),
                           BasicBlock::Create(context, "else", function)};
  BasicBlock* join = BasicBlock::Create(context, "join", function);
  llvm::Instruction* entry = builder_.CreateCondBr(condition, blocks[0], blocks[1]);
  const Block* bodies[2] = {&branch.then_body, &branch.else_body};
  placement::Effects effects[2] = {placement::effects_of(branch.then_body),
                                   placement::effects_of(branch.else_body)};
  std::vector<uint32_t> arrays = effects[0].arrays;
  for (uint32_t id : effects[1].arrays) placement::add_unique(arrays, id);

  std::vector<llvm::WeakTrackingVH> before, after[2];
  for (uint32_t id : arrays) before.insert(before.end(), regs_[id].begin(), regs_[id].end());
  BasicBlock* ends[2];
  for (int side = 0; side < 2; ++side) {
    builder_.SetInsertPoint(blocks[side]);
    open_scope(entry, {false, false, true});
    size_t at = 0;
    for (uint32_t id : arrays) {
      for (llvm::WeakTrackingVH& element : regs_[id]) element = before[at++];
      values_.touch(values_.slot(RegArray{id}), values_.depth());
    }
    emit_block(*bodies[side]);
    for (uint32_t id : arrays)
      after[side].insert(after[side].end(), regs_[id].begin(), regs_[id].end());
    ends[side] = builder_.GetInsertBlock();
    builder_.CreateBr(join);
    close_scope();
  }
  builder_.SetInsertPoint(join);
  size_t at = 0;
  for (uint32_t id : arrays)
    for (llvm::WeakTrackingVH& element : regs_[id]) {
      Value* values[2] = {after[0][at], after[1][at]};
      ++at;
      element = values[0];
      if (values[0] == values[1]) continue;
      llvm::PHINode* phi = builder_.CreatePHI(values[0]->getType(), 2);
      for (int side = 0; side < 2; ++side) phi->addIncoming(values[side], ends[side]);
      element = phi;
    }
  values_.note(effects[0]);
  values_.note(effects[1]);
}

void KernelEmitter::emit_stmt(const Let& let) {
  Placed placed = emit(let.value);
  VarValue& var = vars_[let.var.id];
  var.value = placed.value;
  var.divisor = 1;
  var.linear.reset();
  if (let.value->dtype == DType::i64 && let.value->lanes == 1) var.linear = resolve(let.value);
  if (!is_float(let.value->dtype)) ranges_.set(let.var, ranges_.of(let.value));
  values_.touch(values_.slot(let.var), placed.level);
}

void KernelEmitter::emit_stmt(const loop::DeclareRegs& declare) {
  const RegArray array = declare.array;
  const loop::RegInfo& info = kernel_.regs[array.id];
  int64_t count = 1;
  for (int64_t extent : info.shape) count *= extent;
  auto* undefined = llvm::PoisonValue::get(type(info.dtype, info.lanes));
  regs_[array.id].assign(static_cast<size_t>(count), llvm::WeakTrackingVH(undefined));
  values_.touch(values_.slot(array), values_.depth());
}

llvm::WeakTrackingVH* KernelEmitter::reg_element(RegArray array, const std::vector<Expr>& indices) {
  std::vector<llvm::WeakTrackingVH>& elements = regs_[array.id];
  std::optional<size_t> at = register_at(array, indices, elements.size());
  return at ? &elements[*at] : nullptr;
}

void KernelEmitter::emit_stmt(const SetReg& set) {
  Value* v = value(set.value);
  if (llvm::WeakTrackingVH* element = reg_element(set.array, set.indices)) *element = v;
  values_.touch(values_.slot(set.array), values_.depth());
}

}  // namespace lathe::cpu
