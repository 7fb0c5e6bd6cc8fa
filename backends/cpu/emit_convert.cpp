// Types, casts, and the two forms of a value: as computed and as stored.
//
// bool is i1 computed and i8 stored; f16 and bf16 are f32 computed (holding exactly a value of the
// narrow type) and 16 bits stored.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>

#include "backends/cpu/kernel_emitter.h"

namespace lathe::cpu {

using llvm::Value;

namespace {

llvm::Type* with_lanes(llvm::Type* scalar, int lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

}  // namespace

llvm::Type* KernelEmitter::type(DType dtype, int lanes) const {
  llvm::LLVMContext& c = module_.getContext();
  switch (dtype) {
    case DType::b8:
      return with_lanes(llvm::Type::getInt1Ty(c), lanes);
    case DType::u8:
    case DType::i8:
      return with_lanes(llvm::Type::getInt8Ty(c), lanes);
    case DType::i16:
      return with_lanes(llvm::Type::getInt16Ty(c), lanes);
    case DType::i32:
      return with_lanes(llvm::Type::getInt32Ty(c), lanes);
    case DType::i64:
      return with_lanes(llvm::Type::getInt64Ty(c), lanes);
    case DType::f16:
    case DType::bf16:
    case DType::f32:
      return with_lanes(llvm::Type::getFloatTy(c), lanes);
    case DType::f64:
      return with_lanes(llvm::Type::getDoubleTy(c), lanes);
  }
  return nullptr;
}

llvm::Type* KernelEmitter::memory_type(DType dtype, int lanes) const {
  llvm::LLVMContext& c = module_.getContext();
  if (dtype == DType::b8) return with_lanes(llvm::Type::getInt8Ty(c), lanes);
  if (is_half(dtype)) return with_lanes(llvm::Type::getInt16Ty(c), lanes);
  return type(dtype, lanes);
}

namespace {

int lanes_of(Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* int_type(Value* like, unsigned bits) {
  return with_lanes(llvm::IntegerType::get(like->getContext(), bits), lanes_of(like));
}

}  // namespace

Value* KernelEmitter::from_memory(DType dtype, Value* bits) {
  if (dtype == DType::b8)
    return builder_.CreateICmpNE(bits, llvm::Constant::getNullValue(bits->getType()));
  if (dtype == DType::bf16) {
    Value* wide = builder_.CreateShl(builder_.CreateZExt(bits, int_type(bits, 32)), 16);
    return builder_.CreateBitCast(wide, type(dtype, lanes_of(bits)));
  }
  if (dtype == DType::f16) {
    llvm::Type* half = with_lanes(builder_.getHalfTy(), lanes_of(bits));
    return builder_.CreateFPExt(builder_.CreateBitCast(bits, half), type(dtype, lanes_of(bits)));
  }
  return bits;
}

Value* KernelEmitter::to_memory(DType dtype, Value* x) {
  if (dtype == DType::b8) return builder_.CreateZExt(x, int_type(x, 8));
  if (dtype == DType::bf16) {
    Value* word = builder_.CreateBitCast(x, int_type(x, 32));
    return builder_.CreateTrunc(builder_.CreateLShr(word, 16), int_type(x, 16));
  }
  if (dtype == DType::f16) {
    llvm::Type* half = with_lanes(builder_.getHalfTy(), lanes_of(x));
    return builder_.CreateBitCast(builder_.CreateFPTrunc(x, half), int_type(x, 16));
  }
  return x;
}

Value* KernelEmitter::round_half(DType dtype, Value* x) {
  if (dtype == DType::f16) {
    llvm::Type* half = with_lanes(builder_.getHalfTy(), lanes_of(x));
    return builder_.CreateFPExt(builder_.CreateFPTrunc(x, half), x->getType());
  }
  if (dtype != DType::bf16) return x;
  // To the nearest with ties to even by integer arithmetic; a NaN keeps its top bits and stays one.
  llvm::Type* i32 = int_type(x, 32);
  auto constant = [&](uint64_t v) { return llvm::ConstantInt::get(i32, v); };
  Value* word = builder_.CreateBitCast(x, i32);
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(word, 16), constant(1));
  Value* nearest = builder_.CreateAdd(word, builder_.CreateAdd(odd, constant(0x7fff)));
  Value* quiet = builder_.CreateOr(word, constant(0x400000));
  Value* bits = builder_.CreateSelect(builder_.CreateFCmpUNO(x, x), quiet, nearest);
  return builder_.CreateBitCast(builder_.CreateAnd(bits, constant(0xffff0000u)), x->getType());
}

Value* KernelEmitter::cast(DType from, DType to, Value* x) {
  if (from == to) return x;
  int lanes = lanes_of(x);
  llvm::Type* target = type(to, lanes);
  if (to == DType::b8) {
    llvm::Constant* zero = llvm::Constant::getNullValue(x->getType());
    return is_float(from) ? builder_.CreateFCmpUNE(x, zero) : builder_.CreateICmpNE(x, zero);
  }
  if (is_float(from) && is_float(to)) {
    if (from == DType::f64) return round_half(to, builder_.CreateFPTrunc(x, target));
    return to == DType::f64 ? builder_.CreateFPExt(x, target)
                            : (to == DType::f32 ? x : round_half(to, x));
  }
  if (is_float(from)) {
    // Narrow integers go through i32, which vectors convert to directly. Out of range gives any
    // value; the freeze keeps it from being poison.
    unsigned bits = target->getScalarSizeInBits() == 64 ? 64 : 32;
    Value* whole = builder_.CreateFreeze(builder_.CreateFPToSI(x, int_type(x, bits)));
    return builder_.CreateTrunc(whole, target);
  }
  if (is_float(to)) {
    Value* number =
        is_unsigned(from) ? builder_.CreateUIToFP(x, target) : builder_.CreateSIToFP(x, target);
    return round_half(to, number);
  }
  return builder_.CreateIntCast(x, target, !is_unsigned(from));
}

Value* KernelEmitter::bitcast(DType from, DType to, int lanes, Value* x) {
  Value* bits = to_memory(from, x);
  return from_memory(to, builder_.CreateBitCast(bits, memory_type(to, lanes)));
}

}  // namespace lathe::cpu
