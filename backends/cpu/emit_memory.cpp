// Memory: addresses, loads, stores, prefetches.
//
// An index becomes constant + sum of coefficient * value. The constant goes into the instruction's
// displacement; the terms are added to the buffer's pointer one by one, outermost scope first, and
// every prefix is shared: unrolled accesses of one loop body differ by displacements only.
#include <fmt/format.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/kernel_emitter.h"
#include "ir/loop/lane_rise.h"

namespace lathe::cpu {

using llvm::Value;

namespace {

constexpr uint64_t kBufferAlign = 64;

bool is_all(Value* mask, bool ones) {
  auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  return constant && (ones ? constant->isAllOnesValue() : constant->isNullValue());
}

bool fits_i32(const std::vector<int64_t>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; });
}

}  // namespace

// ---- indices ------------------------------------------------------------------------------------

KernelEmitter::Index KernelEmitter::resolve(Expr index) { return resolve(splits_.of(index)); }

KernelEmitter::Index KernelEmitter::resolve(const loop::LaneIndex& parts) {
  Index result;
  result.lanes = parts.lanes;
  result.vectors = parts.vectors;
  auto let_of = [&](loop::Var var) -> const Index* {
    const std::optional<Index>& linear = vars_[var.id].linear;
    return linear ? &*linear : nullptr;
  };
  auto atom_of = [&](Expr atom, const loop::VarRead* read) -> std::variant<int64_t, Term> {
    Placed placed = emit(atom);
    if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(placed.value)) return known->getSExtValue();
    return Term{placed, 1, read ? vars_[read->var.id].divisor : divisor_of(atom)};
  };
  result.add(parts.base, let_of, atom_of);
  result.merge_terms([](const Placed& a, const Placed& b) { return a.value == b.value; });
  return result;
}

// Divides every value of the product of variables.
int64_t KernelEmitter::divisor_of(Expr e) const {
  if (auto* read = std::get_if<loop::VarRead>(&e->kind)) return vars_[read->var.id].divisor;
  auto* product = std::get_if<loop::Binary>(&e->kind);
  if (!product || product->op != BinaryOp::mul) return 1;
  return std::gcd(divisor_of(product->a) * divisor_of(product->b), int64_t{kBufferAlign});
}

Placed KernelEmitter::sum(const Index& index) {
  Placed total{builder_.getInt64(static_cast<uint64_t>(index.constant)), 0};
  for (const Term& term : index.terms) {
    int level = values_.placement(std::max(total.level, term.placed.level), false);
    Value* value = at_level(level, [&] {
      Value* product = builder_.CreateNSWMul(
          term.placed.value, builder_.getInt64(static_cast<uint64_t>(term.coefficient)));
      return builder_.CreateNSWAdd(total.value, product);
    });
    total = {value, level};
  }
  return total;
}

// ---- addresses ----------------------------------------------------------------------------------

Placed KernelEmitter::step_pointer(Placed pointer, llvm::Type* element, const Term& term) {
  PointerKey key{pointer.value, term.placed.value, term.coefficient};
  if (const Placed* known = values_.pointer(key)) return *known;
  int level = values_.placement(std::max(pointer.level, term.placed.level), false);
  Value* stepped = at_level(level, [&] {
    Value* offset = term.placed.value;
    if (term.coefficient != 1)
      offset =
          builder_.CreateNSWMul(offset, builder_.getInt64(static_cast<uint64_t>(term.coefficient)));
    return builder_.CreateGEP(element, pointer.value, offset);
  });
  return values_.remember(key, {stepped, level});
}

KernelEmitter::Address KernelEmitter::address(loop::BufferRef buffer, const Index& index) {
  DType dtype = kernel_.buffers[buffer.id].dtype;
  llvm::Type* element = memory_type(dtype, 1);
  Placed pointer{buffers_[buffer.id], 0};
  uint64_t step = static_cast<uint64_t>(index.constant);
  for (const Term& term : index.terms) {
    pointer = step_pointer(pointer, element, term);
    step = std::gcd(step,
                    static_cast<uint64_t>(term.coefficient) * static_cast<uint64_t>(term.divisor));
  }
  uint64_t bytes = static_cast<uint64_t>(dtype_bytes(dtype));
  uint64_t align = std::gcd(step * bytes, kBufferAlign);
  return {pointer, index.constant, element, std::max(align, bytes)};
}

Value* KernelEmitter::displaced(const Address& at) {
  if (at.displacement == 0) return at.pointer.value;
  return builder_.CreateConstGEP1_64(at.element, at.pointer.value,
                                     static_cast<uint64_t>(at.displacement));
}

// ---- loads --------------------------------------------------------------------------------------

Placed KernelEmitter::emit_load(Expr e) {
  const auto& load = std::get<loop::Load>(e->kind);
  Index index = resolve(load.index);
  Placed mask = load.mask ? emit(load.mask) : Placed{};
  if (error_) return {llvm::PoisonValue::get(type(e->dtype, e->lanes)), 0};
  if (is_all(mask.value, true)) mask = {};
  if (is_all(mask.value, false)) return {llvm::Constant::getNullValue(type(e->dtype, e->lanes)), 0};
  int level = std::max(mask.level, values_.level_of(values_.slot(load.buffer)));
  for (const auto& [vector, factor] : index.vectors) level = std::max(level, emit(vector).level);
  for (const Term& term : index.terms) level = std::max(level, term.placed.level);
  level = values_.placement_of_load(level, e->lanes > 1);
  Address at = address(load.buffer, index);
  Value* bits = at_level(level, [&]() -> Value* {
    if (index.lanes.empty() && e->lanes > 1)
      return contiguous_load(e->dtype, e->lanes, at, mask.value);
    if (e->lanes == 1) return contiguous_load(e->dtype, 1, at, mask.value);
    return scattered_load(load.buffer, e->dtype, index, at, mask.value);
  });
  return {at_level(level, [&] { return from_memory(e->dtype, bits); }), level};
}

Value* KernelEmitter::contiguous_load(DType dtype, int lanes, const Address& at, Value* mask) {
  llvm::Type* stored = memory_type(dtype, lanes);
  llvm::Align align(at.align);
  Value* pointer = displaced(at);
  if (!mask) return builder_.CreateAlignedLoad(stored, pointer, align);
  if (lanes > 1)
    return builder_.CreateMaskedLoad(stored, pointer, align, mask,
                                     llvm::Constant::getNullValue(stored));
  // A disabled scalar load reads a zero of the module instead: no branch.
  Value* zero = module_.getOrInsertGlobal("lathe.zero", builder_.getInt64Ty(), [&] {
    return new llvm::GlobalVariable(module_, builder_.getInt64Ty(), true,
                                    llvm::GlobalValue::PrivateLinkage, builder_.getInt64(0),
                                    "lathe.zero");
  });
  return builder_.CreateAlignedLoad(stored, builder_.CreateSelect(mask, pointer, zero),
                                    llvm::Align(static_cast<uint64_t>(dtype_bytes(dtype))));
}

// The pointers of a vector access that is not contiguous: 32-bit offsets where they surely fit,
// because one gather instruction takes twice as many of them.
Value* KernelEmitter::lane_pointers(llvm::Type* element, const Index& index, Value* base) {
  if (index.vectors.empty() && fits_i32(index.lanes)) {
    std::vector<uint32_t> lanes(index.lanes.begin(), index.lanes.end());
    return builder_.CreateGEP(element, base,
                              llvm::ConstantDataVector::get(module_.getContext(), lanes));
  }
  std::vector<uint64_t> lanes(index.lanes.begin(), index.lanes.end());
  Value* total = llvm::ConstantDataVector::get(module_.getContext(), lanes);
  __int128 low = *std::min_element(index.lanes.begin(), index.lanes.end());
  __int128 high = *std::max_element(index.lanes.begin(), index.lanes.end());
  for (const auto& [vector, factor] : index.vectors) {
    loop::Interval range = ranges_.of(vector);
    auto [a, b] = std::minmax(
        {static_cast<__int128>(range.min) * factor, static_cast<__int128>(range.max) * factor});
    low += a;
    high += b;
    Value* lane = value(vector);
    Value* scaled = builder_.CreateMul(
        lane, llvm::ConstantInt::get(lane->getType(), static_cast<uint64_t>(factor), true));
    total = builder_.CreateAdd(total, scaled);
  }
  if (low >= INT32_MIN && high <= INT32_MAX)
    total = builder_.CreateTrunc(
        total, llvm::FixedVectorType::get(builder_.getInt32Ty(),
                                          static_cast<unsigned>(index.lanes.size())));
  return builder_.CreateGEP(element, base, total);
}

// Lanes that surely lie within a vector or two are read as those and put in order: a gather takes a
// read for every lane. Null where that is not known, or the machine has no such permutation.
Value* KernelEmitter::near_load(loop::BufferRef buffer, DType dtype, const Index& index,
                                Value* mask) {
  const Dim& size = kernel_.buffers[buffer.id].size;
  const int lanes = static_cast<int>(index.lanes.size());
  const bool is_one_vector = index.vectors.size() == 1 && index.vectors.front().second == 1 &&
                             loop::lane_stride(index.lanes) == 0;
  const int width = lanes == 8 || options_.isa == Isa::avx2 ? 8 : 16;  // of a permutation
  if (!is_one_vector || lanes % width != 0 || dtype_bytes(dtype) > 4) return nullptr;
  const Expr vector = index.vectors.front().first;
  const std::optional<double> rise = loop::lane_rise(vector, width, ranges_);
  if (!rise || *rise >= 2 * width) return nullptr;
  const int windows = *rise < width ? 1 : 2;
  if (!size.is_const() || size.value() < windows * width) return nullptr;

  Value* offsets = value(vector);
  Value* base = sum(index).value;
  std::vector<Value*> parts;
  for (int first = 0; first < lanes; first += width) {
    std::vector<int> own(static_cast<size_t>(width));
    std::iota(own.begin(), own.end(), first);
    Value* part = lanes == width ? offsets : builder_.CreateShuffleVector(offsets, own);
    parts.push_back(read_windows(buffer, dtype, base, part, windows));
  }
  Value* result = llvm::concatenateVectors(builder_, parts);
  if (!mask) return result;
  return builder_.CreateSelect(mask, result, llvm::Constant::getNullValue(result->getType()));
}

// Elements base + offsets, which do not fall and lie within so many vectors from the first. Lanes
// that are not enabled may lie anywhere, so the vectors are moved into the buffer.
Value* KernelEmitter::read_windows(loop::BufferRef buffer, DType dtype, Value* base, Value* offsets,
                                   int windows) {
  auto* words = llvm::cast<llvm::FixedVectorType>(llvm::VectorType::get(
      builder_.getInt32Ty(), llvm::cast<llvm::VectorType>(offsets->getType())));
  const unsigned width = words->getNumElements();
  const int64_t last =
      kernel_.buffers[buffer.id].size.value() - windows * static_cast<int64_t>(width);
  Value* first = builder_.CreateAdd(base, builder_.CreateExtractElement(offsets, uint64_t{0}));
  first = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, first,
                                         builder_.getInt64(static_cast<uint64_t>(last)));
  first = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, first, builder_.getInt64(0));
  Value* behind = builder_.CreateTrunc(builder_.CreateSub(base, first), builder_.getInt32Ty());
  Value* positions = builder_.CreateAdd(builder_.CreateTrunc(offsets, words),
                                        builder_.CreateVectorSplat(width, behind));
  llvm::Type* element = memory_type(dtype, 1);
  llvm::Type* stored = memory_type(dtype, static_cast<int>(width));
  llvm::Type* bits = llvm::VectorType::getInteger(llvm::cast<llvm::VectorType>(stored));
  Value* pointer = builder_.CreateGEP(element, buffers_[buffer.id], first);
  const auto window = [&](int64_t i) {
    const Address at = {
        {pointer, 0}, i * width, element, static_cast<uint64_t>(dtype_bytes(dtype))};
    Value* loaded = contiguous_load(dtype, static_cast<int>(width), at, nullptr);
    loaded = builder_.CreateZExt(builder_.CreateBitCast(loaded, bits), words);
    return builder_.CreateIntrinsic(
        width == 8 ? llvm::Intrinsic::x86_avx2_permd : llvm::Intrinsic::x86_avx512_permvar_si_512,
        {}, {loaded, positions});
  };
  Value* result = window(0);
  if (windows == 2) {
    Value* is_second = builder_.CreateICmpSGE(positions, llvm::ConstantInt::get(words, width));
    result = builder_.CreateSelect(is_second, window(1), result);
  }
  return builder_.CreateBitCast(builder_.CreateTrunc(result, bits), stored);
}

// Lane `lane` of integers that were read side by side, read once more by itself; null where that is
// not how they came about, or memory may have been written since.
Value* KernelEmitter::read_lane(Value* vector, int lane) {
  if (auto* widened = llvm::dyn_cast<llvm::CastInst>(vector);
      widened && llvm::isa<llvm::SExtInst, llvm::ZExtInst>(widened)) {
    Value* own = read_lane(widened->getOperand(0), lane);
    return own ? builder_.CreateCast(widened->getOpcode(), own, builder_.getInt64Ty()) : nullptr;
  }
  auto* load = llvm::dyn_cast<llvm::LoadInst>(vector);
  if (!load) return nullptr;
  const auto writes = [](auto from, auto to) {
    return std::any_of(from, to, [](const auto& next) { return next.mayWriteToMemory(); });
  };
  llvm::BasicBlock* here = builder_.GetInsertBlock();
  llvm::BasicBlock* of_load = load->getParent();
  if (of_load != here &&
      (here->getSinglePredecessor() != of_load || writes(here->begin(), builder_.GetInsertPoint())))
    return nullptr;
  if (writes(load->getIterator(), of_load == here ? builder_.GetInsertPoint() : of_load->end()))
    return nullptr;
  llvm::Type* element = load->getType()->getScalarType();
  Value* pointer =
      builder_.CreateConstGEP1_64(element, load->getPointerOperand(), static_cast<uint64_t>(lane));
  return builder_.CreateAlignedLoad(element, pointer,
                                    llvm::Align(element->getScalarSizeInBits() / 8));
}

// Reads one by one at positions that were read side by side: a gather instruction takes longer, and
// so does taking lanes out of vectors. Null where positions are made in another way.
Value* KernelEmitter::lanewise_load(DType dtype, const Index& index, Value* base) {
  llvm::Type* element = memory_type(dtype, 1);
  Value* result = llvm::PoisonValue::get(memory_type(dtype, static_cast<int>(index.lanes.size())));
  for (size_t lane = 0; lane < index.lanes.size(); ++lane) {
    Value* total = builder_.getInt64(static_cast<uint64_t>(index.lanes[lane]));
    for (const auto& [vector, factor] : index.vectors) {
      Value* own = read_lane(value(vector), static_cast<int>(lane));
      if (!own) return nullptr;
      total = builder_.CreateAdd(
          total, builder_.CreateMul(own, builder_.getInt64(static_cast<uint64_t>(factor))));
    }
    Value* read =
        builder_.CreateAlignedLoad(element, builder_.CreateGEP(element, base, total),
                                   llvm::Align(static_cast<uint64_t>(dtype_bytes(dtype))));
    result = builder_.CreateInsertElement(result, read, static_cast<uint64_t>(lane));
  }
  return result;
}

Value* KernelEmitter::scattered_load(loop::BufferRef buffer, DType dtype, const Index& index,
                                     const Address& at, Value* mask) {
  int lanes = static_cast<int>(index.lanes.size());
  std::optional<int64_t> stride;
  if (index.vectors.empty()) stride = loop::lane_stride(index.lanes);
  if (stride == 1) return contiguous_load(dtype, lanes, at, mask);
  llvm::Type* stored = memory_type(dtype, lanes);
  llvm::Type* element = memory_type(dtype, 1);
  llvm::Align align(static_cast<uint64_t>(dtype_bytes(dtype)));
  if (stride == 0 && !mask)
    return builder_.CreateVectorSplat(static_cast<unsigned>(lanes),
                                      contiguous_load(dtype, 1, at, nullptr));
  if (stride == -1) {
    Value* first = builder_.CreateGEP(element, displaced(at), builder_.getInt64(1 - lanes));
    const Address reversed = {{first, 0}, 0, element, static_cast<uint64_t>(dtype_bytes(dtype))};
    Value* own = mask ? builder_.CreateVectorReverse(mask) : nullptr;
    return builder_.CreateVectorReverse(contiguous_load(dtype, lanes, reversed, own));
  }
  if (Value* loaded = near_load(buffer, dtype, index, mask)) return loaded;
  bool has_gather = options_.isa >= Isa::avx512 && dtype_bytes(dtype) >= 4;
  // Of several positions for each lane a gather keeps more reads under way.
  const bool is_lanewise = !mask && (index.vectors.size() == 1 || !has_gather);
  if (Value* loaded = is_lanewise ? lanewise_load(dtype, index, displaced(at)) : nullptr)
    return loaded;
  Value* pointers = lane_pointers(element, index, displaced(at));
  if (mask || has_gather)
    return builder_.CreateMaskedGather(stored, pointers, align, mask,
                                       llvm::Constant::getNullValue(stored));
  Value* result = llvm::PoisonValue::get(stored);
  for (int lane = 0; lane < lanes; ++lane) {
    Value* pointer = builder_.CreateExtractElement(pointers, static_cast<uint64_t>(lane));
    result = builder_.CreateInsertElement(
        result, builder_.CreateAlignedLoad(element, pointer, align), static_cast<uint64_t>(lane));
  }
  return result;
}

// ---- stores -------------------------------------------------------------------------------------

void KernelEmitter::emit_stmt(const loop::Store& store) {
  Index index = resolve(store.index);
  int lanes = std::max(store.value->lanes, store.index->lanes);
  Value* x = value(store.value);
  Value* mask = store.mask ? value(store.mask) : nullptr;
  if (error_ || is_all(mask, false)) return;
  if (is_all(mask, true)) mask = nullptr;
  Address at = address(store.buffer, index);
  Value* bits = to_memory(store.value->dtype, x);
  bool is_contiguous =
      index.lanes.empty() || (index.vectors.empty() && loop::lane_stride(index.lanes) == 1);
  if (is_contiguous && mask && lanes == 1) {
    masked_scalar_store(bits, at, mask);
  } else if (is_contiguous) {
    contiguous_store(store, at, bits, mask);
  } else {
    llvm::Type* element = memory_type(store.value->dtype, 1);
    builder_.CreateMaskedScatter(
        bits, lane_pointers(element, index, displaced(at)),
        llvm::Align(static_cast<uint64_t>(dtype_bytes(store.value->dtype))), mask);
  }
  values_.note_store(store.buffer);
}

void KernelEmitter::contiguous_store(const loop::Store& store, const Address& at, Value* bits,
                                     Value* mask) {
  llvm::Align align(at.align);
  if (mask) {
    builder_.CreateMaskedStore(bits, displaced(at), align, mask);
    return;
  }
  llvm::StoreInst* instruction = builder_.CreateAlignedStore(bits, displaced(at), align);
  if (!store.nontemporal) return;
  llvm::LLVMContext& context = module_.getContext();
  llvm::Metadata* one = llvm::ConstantAsMetadata::get(builder_.getInt32(1));
  instruction->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(context, one));
  has_nontemporal_ = true;
}

void KernelEmitter::masked_scalar_store(Value* bits, const Address& at, Value* mask) {
  llvm::LLVMContext& context = module_.getContext();
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  llvm::BasicBlock* write = llvm::BasicBlock::Create(context, "write", function);
  llvm::BasicBlock* skip = llvm::BasicBlock::Create(context, "skip", function);
  builder_.CreateCondBr(mask, write, skip);
  builder_.SetInsertPoint(write);
  builder_.CreateAlignedStore(bits, displaced(at), llvm::Align(at.align));
  builder_.CreateBr(skip);
  builder_.SetInsertPoint(skip);
}

void KernelEmitter::emit_stmt(const loop::Prefetch& prefetch) {
  Index index = resolve(prefetch.index);
  if (error_) return;
  Value* pointer = displaced(address(prefetch.buffer, index));
  builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {pointer->getType()},
      {pointer, builder_.getInt32(0),
       builder_.getInt32(static_cast<uint32_t>(std::clamp(prefetch.locality, 0, 3))),
       builder_.getInt32(1)});
}

}  // namespace lathe::cpu
