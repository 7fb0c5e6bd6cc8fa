// Arithmetic: the meaning of every operator of loop/node.h in LLVM IR, without fast-math flags.
#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/kernel_emitter.h"

namespace lathe::cpu {

using llvm::ConstantInt;
using llvm::Value;
using loop::ReduceOp;

namespace {

llvm::Constant* int_like(Value* x, int64_t v) {
  return ConstantInt::get(x->getType(), static_cast<uint64_t>(v), true);
}

// The integer that all lanes of a constant hold.
const ConstantInt* constant_int(Value* v) {
  if (auto* scalar = llvm::dyn_cast<ConstantInt>(v)) return scalar;
  auto* vector = llvm::dyn_cast<llvm::Constant>(v);
  return vector && v->getType()->isVectorTy()
             ? llvm::dyn_cast_or_null<ConstantInt>(vector->getSplatValue())
             : nullptr;
}

}  // namespace

Value* KernelEmitter::unary(UnaryOp op, DType dtype, Value* x) {
  auto intrinsic = [&](llvm::Intrinsic::ID id) {
    return round_half(dtype, builder_.CreateUnaryIntrinsic(id, x));
  };
  bool floating = is_float(dtype);
  switch (op) {
    case UnaryOp::neg:
      if (dtype == DType::b8) return x;
      return floating ? builder_.CreateFNeg(x) : builder_.CreateNeg(x);
    case UnaryOp::abs:
      if (floating) return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
      if (is_unsigned(dtype)) return x;
      return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, builder_.getFalse());
    case UnaryOp::sqrt:
      return intrinsic(llvm::Intrinsic::sqrt);
    case UnaryOp::rsqrt: {
      Value* root = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
      return round_half(dtype, builder_.CreateFDiv(llvm::ConstantFP::get(x->getType(), 1.0), root));
    }
    case UnaryOp::floor:
      return floating ? intrinsic(llvm::Intrinsic::floor) : x;
    case UnaryOp::ceil:
      return floating ? intrinsic(llvm::Intrinsic::ceil) : x;
    case UnaryOp::trunc:
      return floating ? intrinsic(llvm::Intrinsic::trunc) : x;
    case UnaryOp::round_even:
      return floating ? intrinsic(llvm::Intrinsic::roundeven) : x;
    case UnaryOp::logical_not:
      return floating ? builder_.CreateFCmpOEQ(x, llvm::Constant::getNullValue(x->getType()))
                      : builder_.CreateICmpEQ(x, llvm::Constant::getNullValue(x->getType()));
    case UnaryOp::bit_not:
      return builder_.CreateNot(x);
    case UnaryOp::is_nan:
      if (floating) return builder_.CreateFCmpUNO(x, x);
      return llvm::Constant::getNullValue(
          builder_.CreateICmpEQ(x, llvm::Constant::getNullValue(x->getType()))->getType());
    case UnaryOp::exp:
    case UnaryOp::expm1:
    case UnaryOp::log:
    case UnaryOp::log1p:
    case UnaryOp::sin:
    case UnaryOp::cos:
    case UnaryOp::tanh:
    case UnaryOp::erf:
      break;
  }
  return fail("a transcendental function was not expanded");
}

Value* KernelEmitter::binary(Expr e, Value* a, Value* b) {
  const auto& node = std::get<loop::Binary>(e->kind);
  DType dtype = node.a->dtype;
  if (node.op >= BinaryOp::eq) return compare(node.op, dtype, a, b);
  if (is_float(dtype)) return float_binary(node.op, dtype, node.a, node.b, a, b);
  if (dtype == DType::b8) return bool_binary(node.op, a, b);
  return int_binary(node, dtype, a, b);
}

Value* KernelEmitter::float_binary(BinaryOp op, DType dtype, Expr ea, Expr eb, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::add:
      return round_half(dtype, builder_.CreateFAdd(a, b));
    case BinaryOp::sub:
      return round_half(dtype, builder_.CreateFSub(a, b));
    case BinaryOp::mul:
      return round_half(dtype, builder_.CreateFMul(a, b));
    case BinaryOp::div:
      return round_half(dtype, builder_.CreateFDiv(a, b));
    case BinaryOp::min:
    case BinaryOp::max:
      return min_max(op == BinaryOp::min, placement::is_number(ea), placement::is_number(eb), a, b);
    default:
      return fail("a float operation that targets do not have was not expanded");
  }
}

// The machine's minimum is `a < b ? a : b`: it gives b when either is NaN. So a side that cannot be
// NaN goes first and one instruction is enough; otherwise NaN in `a` is put back.
Value* KernelEmitter::min_max(bool is_min, bool a_is_number, bool b_is_number, Value* a, Value* b) {
  if (!a_is_number && b_is_number) std::swap(a, b);
  Value* first = is_min ? builder_.CreateFCmpOLT(a, b) : builder_.CreateFCmpOGT(a, b);
  Value* picked = builder_.CreateSelect(first, a, b);
  if (a_is_number || b_is_number) return picked;
  return builder_.CreateSelect(builder_.CreateFCmpUNO(a, a), a, picked);
}

Value* KernelEmitter::bool_binary(BinaryOp op, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::max:
    case BinaryOp::bit_or:
      return builder_.CreateOr(a, b);
    case BinaryOp::sub:
    case BinaryOp::bit_xor:
      return builder_.CreateXor(a, b);
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::bit_and:
    case BinaryOp::div:
    case BinaryOp::floor_div:
      return builder_.CreateAnd(a, b);
    case BinaryOp::mod:
      return llvm::Constant::getNullValue(a->getType());
    case BinaryOp::shift_left:  // one bit: any shift moves it out
    case BinaryOp::shift_right:
      return builder_.CreateAnd(a, builder_.CreateNot(b));
    default:
      return fail("pow on bools was not expanded");
  }
}

Value* KernelEmitter::int_binary(const loop::Binary& node, DType dtype, Value* a, Value* b) {
  const BinaryOp op = node.op;
  bool is_index = dtype == DType::i64 && !a->getType()->isVectorTy();  // these do not overflow
  switch (op) {
    case BinaryOp::add:
      return builder_.CreateAdd(a, b, "", false, is_index);
    case BinaryOp::sub:
      return builder_.CreateSub(a, b, "", false, is_index);
    case BinaryOp::mul:
      return builder_.CreateMul(a, b, "", false, is_index);
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::mod:
      return int_division(node, dtype, a, b);
    case BinaryOp::min:
      return builder_.CreateBinaryIntrinsic(
          is_unsigned(dtype) ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, a, b);
    case BinaryOp::max:
      return builder_.CreateBinaryIntrinsic(
          is_unsigned(dtype) ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, a, b);
    case BinaryOp::bit_and:
      return builder_.CreateAnd(a, b);
    case BinaryOp::bit_or:
      return builder_.CreateOr(a, b);
    case BinaryOp::bit_xor:
      return builder_.CreateXor(a, b);
    case BinaryOp::shift_left:
    case BinaryOp::shift_right:
      return shift(op, dtype, a, b);
    default:
      return fail("pow on integers was not expanded");
  }
}

// A zero divisor gives 0; the most negative number divided by -1 wraps. The hardware traps on both,
// so divisors that are not constants are replaced by 1 there.
Value* KernelEmitter::int_division(const loop::Binary& node, DType dtype, Value* a, Value* b) {
  const BinaryOp op = node.op;
  const ConstantInt* divisor = constant_int(b);
  bool is_known = divisor && divisor->getSExtValue() != 0 && !divisor->isMinusOne();
  bool is_positive = is_known && divisor->getSExtValue() > 0;
  bool is_natural =
      is_unsigned(dtype) || (dtype == DType::i64 && (is_positive || ranges_.of(node.b).min > 0) &&
                             ranges_.of(node.a).min >= 0);
  if (!is_known && is_natural && dtype == DType::i64)  // of a size: no value of it may trap
    b = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, b, int_like(b, 1));
  if (is_natural && (is_known || dtype == DType::i64))
    return op == BinaryOp::mod ? builder_.CreateURem(a, b) : builder_.CreateUDiv(a, b);
  if (is_positive && divisor->getValue().isPowerOf2() && op != BinaryOp::div) {
    if (op == BinaryOp::mod) return builder_.CreateAnd(a, int_like(a, divisor->getSExtValue() - 1));
    return builder_.CreateAShr(a, int_like(a, divisor->getValue().logBase2()));
  }
  Value* zero = int_like(a, 0);
  Value* is_zero = builder_.CreateICmpEQ(b, zero);
  if (is_unsigned(dtype)) {
    Value* safe = builder_.CreateSelect(is_zero, int_like(a, 1), b);
    Value* result =
        op == BinaryOp::mod ? builder_.CreateURem(a, safe) : builder_.CreateUDiv(a, safe);
    return builder_.CreateSelect(is_zero, zero, result);
  }
  Value* is_minus_one = builder_.CreateICmpEQ(b, int_like(a, -1));
  Value* is_special = builder_.CreateOr(is_zero, is_minus_one);
  Value* safe = builder_.CreateSelect(is_special, int_like(a, 1), b);
  Value* quotient = builder_.CreateSDiv(a, safe);
  Value* remainder = builder_.CreateSub(a, builder_.CreateMul(quotient, safe));
  // Rounding down: one less where a remainder and the divisor differ in sign.
  Value* is_down =
      builder_.CreateAnd(builder_.CreateICmpNE(remainder, zero),
                         builder_.CreateICmpSLT(builder_.CreateXor(remainder, safe), zero));
  if (op == BinaryOp::mod) {
    Value* wrapped = builder_.CreateAdd(remainder, safe);
    return builder_.CreateSelect(is_special, zero,
                                 builder_.CreateSelect(is_down, wrapped, remainder));
  }
  if (op == BinaryOp::floor_div)
    quotient = builder_.CreateAdd(quotient, builder_.CreateSExt(is_down, a->getType()));
  quotient = builder_.CreateSelect(is_minus_one, builder_.CreateNeg(a), quotient);
  return builder_.CreateSelect(is_zero, zero, quotient);
}

// Amounts outside of the width shift everything out; LLVM's would be undefined.
Value* KernelEmitter::shift(BinaryOp op, DType dtype, Value* a, Value* b) {
  unsigned width = a->getType()->getScalarSizeInBits();
  Value* top = int_like(a, static_cast<int64_t>(width) - 1);
  if (op == BinaryOp::shift_right && !is_unsigned(dtype))
    return builder_.CreateAShr(a, builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, top));
  const ConstantInt* amount = constant_int(b);
  bool is_inside = amount && amount->getValue().ult(width);
  Value* by = is_inside ? b : builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, top);
  Value* result =
      op == BinaryOp::shift_left ? builder_.CreateShl(a, by) : builder_.CreateLShr(a, by);
  if (is_inside) return result;
  return builder_.CreateSelect(builder_.CreateICmpUGT(b, top), int_like(a, 0), result);
}

Value* KernelEmitter::compare(BinaryOp op, DType dtype, Value* a, Value* b) {
  using Pred = llvm::CmpInst::Predicate;
  struct Row {
    Pred floating, is_signed, is_unsigned;
  };
  static constexpr Row kRows[] = {
      {Pred::FCMP_OEQ, Pred::ICMP_EQ, Pred::ICMP_EQ},
      {Pred::FCMP_UNE, Pred::ICMP_NE, Pred::ICMP_NE},
      {Pred::FCMP_OLT, Pred::ICMP_SLT, Pred::ICMP_ULT},
      {Pred::FCMP_OLE, Pred::ICMP_SLE, Pred::ICMP_ULE},
      {Pred::FCMP_OGT, Pred::ICMP_SGT, Pred::ICMP_UGT},
      {Pred::FCMP_OGE, Pred::ICMP_SGE, Pred::ICMP_UGE},
  };
  const Row& row = kRows[static_cast<int>(op) - static_cast<int>(BinaryOp::eq)];
  if (is_float(dtype)) return builder_.CreateFCmp(row.floating, a, b);
  return builder_.CreateICmp(is_unsigned(dtype) ? row.is_unsigned : row.is_signed, a, b);
}

// Comparisons of index vectors, which masks are made of: the lanes differ by constants, so one
// scalar decides all of them and 32-bit lanes are enough.
std::optional<Placed> KernelEmitter::index_compare(Expr e) {
  const std::optional<loop::LaneIndex> parts = placement::split_compare(e);
  if (!parts) return std::nullopt;
  const BinaryOp op = std::get<loop::Binary>(e->kind).op;
  Index difference = resolve(*parts);
  auto [low, high] = std::minmax_element(difference.lanes.begin(), difference.lanes.end());
  std::vector<uint32_t> lanes(difference.lanes.begin(), difference.lanes.end());

  // lane + rest OP 0, as lane OP -rest with -rest clamped to one beyond the lanes.
  Placed rest = sum(difference);
  int level = values_.placement(rest.level, true);
  Value* result = at_level(level, [&, least = *low - 1, most = *high + 1] {
    Value* bound = builder_.CreateNeg(rest.value);
    if (auto* known = constant_int(bound)) {
      bound = int_like(bound, std::clamp(known->getSExtValue(), least, most));
    } else {
      bound = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, bound, int_like(bound, least));
      bound = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, bound, int_like(bound, most));
    }
    Value* splat = builder_.CreateVectorSplat(static_cast<unsigned>(e->lanes),
                                              builder_.CreateTrunc(bound, builder_.getInt32Ty()));
    Value* offsets = llvm::ConstantDataVector::get(module_.getContext(), lanes);
    return compare(op, DType::i32, offsets, splat);
  });
  return Placed{result, level};
}

// The last operand is the one that an instruction reads from memory or broadcasts: a's.
Value* KernelEmitter::pair_dot(Value* a, Value* b, Value* c) {
  auto* sums = llvm::dyn_cast<llvm::FixedVectorType>(c->getType());
  const unsigned lanes = sums ? sums->getNumElements() : 1;
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  if (lanes == 4) id = llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
  if (lanes == 8) id = llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256;
  if (lanes == 16) id = llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512;
  if (options_.isa != Isa::avx512_bf16 || id == llvm::Intrinsic::not_intrinsic)
    return fail(fmt::format("{} has no dot of pairs of {} lanes", isa_name(options_.isa), lanes));
  // Models of older processors do not know the instruction, and loads are then moved so far ahead
  // of it that sums are spilled.
  llvm::Function* function = builder_.GetInsertBlock()->getParent();
  function->addFnAttr("target-features", "+avx512bf16");
  function->addFnAttr("tune-cpu", "sapphirerapids");
  auto* pairs = llvm::FixedVectorType::get(builder_.getBFloatTy(), 2 * lanes);
  return builder_.CreateIntrinsic(
      id, {}, {c, builder_.CreateBitCast(b, pairs), builder_.CreateBitCast(a, pairs)});
}

Value* KernelEmitter::reduce_lanes(ReduceOp op, DType dtype, Value* x) {
  if (op == ReduceOp::any && dtype == DType::b8) {
    auto* bits =
        builder_.getIntNTy(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
    return builder_.CreateIsNotNull(builder_.CreateBitCast(x, bits));
  }
  auto combine = [&](Value* a, Value* b) -> Value* {
    bool is_bool = dtype == DType::b8;
    switch (op) {
      case ReduceOp::sum:
        if (is_float(dtype)) return round_half(dtype, builder_.CreateFAdd(a, b));
        return is_bool ? builder_.CreateOr(a, b) : builder_.CreateAdd(a, b);
      case ReduceOp::prod:
        if (is_float(dtype)) return round_half(dtype, builder_.CreateFMul(a, b));
        return is_bool ? builder_.CreateAnd(a, b) : builder_.CreateMul(a, b);
      case ReduceOp::max:
      case ReduceOp::min: {
        bool is_min = op == ReduceOp::min;
        if (is_float(dtype)) return min_max(is_min, false, false, a, b);
        Value* first = compare(is_min ? BinaryOp::lt : BinaryOp::gt, dtype, a, b);
        return builder_.CreateSelect(first, a, b);
      }
      case ReduceOp::any:
        return builder_.CreateOr(a, b);
      case ReduceOp::all:
        return builder_.CreateAnd(a, b);
      case ReduceOp::argmax:
      case ReduceOp::argmin:
        break;
    }
    return fail("lanes cannot be reduced by argmax or argmin");
  };
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return x;
  unsigned lanes = vector->getNumElements();
  if ((lanes & (lanes - 1)) != 0)
    return fail(fmt::format("{} lanes are reduced, expected a power of two", lanes));
  for (unsigned half = lanes / 2; half > 1; half /= 2) {
    std::vector<int> low(half), high(half);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), static_cast<int>(half));
    x = combine(builder_.CreateShuffleVector(x, low), builder_.CreateShuffleVector(x, high));
  }
  return combine(builder_.CreateExtractElement(x, uint64_t{0}),
                 builder_.CreateExtractElement(x, uint64_t{1}));
}

}  // namespace lathe::cpu
