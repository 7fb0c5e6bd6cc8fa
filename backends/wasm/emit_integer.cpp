// Integer arithmetic, of scalars and lanes. Indices are computed in 32 bits where ranges allow.
#include <bit>

#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"
#include "ir/loop/scalar.h"

namespace lathe::wasm {
namespace {

// Instructions by form: i32, i64.
struct IntOps {
  Op add, sub, mul, div_s, div_u, rem_s, rem_u, bit_and, bit_or, bit_xor, shl, shr_s, shr_u;
  Op eq, lt_s, gt_s, ge_u;
};
constexpr IntOps kScalar[] = {
    {Op::i32_add, Op::i32_sub, Op::i32_mul, Op::i32_div_s, Op::i32_div_u, Op::i32_rem_s,
     Op::i32_rem_u, Op::i32_and, Op::i32_or, Op::i32_xor, Op::i32_shl, Op::i32_shr_s, Op::i32_shr_u,
     Op::i32_eq, Op::i32_lt_s, Op::i32_gt_s, Op::i32_ge_u},
    {Op::i64_add, Op::i64_sub, Op::i64_mul, Op::i64_div_s, Op::i64_div_u, Op::i64_rem_s,
     Op::i64_rem_u, Op::i64_and, Op::i64_or, Op::i64_xor, Op::i64_shl, Op::i64_shr_s, Op::i64_shr_u,
     Op::i64_eq, Op::i64_lt_s, Op::i64_gt_s, Op::i64_ge_u},
};
const IntOps& scalar_ops(Form form) { return kScalar[form == Form::i64 ? 1 : 0]; }

struct LaneOps {
  Op add, sub, mul, shl, shr_s, shr_u, lt_s, gt_s;
};
constexpr LaneOps kLanes[] = {
    {Op::i32x4_add, Op::i32x4_sub, Op::i32x4_mul, Op::i32x4_shl, Op::i32x4_shr_s, Op::i32x4_shr_u,
     Op::i32x4_lt_s, Op::i32x4_gt_s},
    {Op::i64x2_add, Op::i64x2_sub, Op::i64x2_mul, Op::i64x2_shl, Op::i64x2_shr_s, Op::i64x2_shr_u,
     Op::i64x2_lt_s, Op::i64x2_gt_s},
};

bool is_division(BinaryOp op) {
  return op == BinaryOp::div || op == BinaryOp::floor_div || op == BinaryOp::mod;
}
bool is_shift(BinaryOp op) { return op == BinaryOp::shift_left || op == BinaryOp::shift_right; }

}  // namespace

Ref KernelEmitter::as_i32(Ref value) {
  if (builder_.type(value) == Type::i32) return value;
  if (std::optional<int64_t> known = builder_.int_constant(value))
    return builder_.i32(static_cast<int32_t>(*known));
  return builder_.op(Op::i32_wrap_i64, {value});
}

Ref KernelEmitter::as_i64(Ref value) {
  if (builder_.type(value) == Type::i64) return value;
  if (std::optional<int64_t> known = builder_.int_constant(value)) return builder_.i64(*known);
  return builder_.op(Op::i64_extend_i32_s, {value});
}

Ref KernelEmitter::int_of(Form form, int64_t value) {
  return form == Form::i64 ? builder_.i64(value) : builder_.i32(static_cast<int32_t>(value));
}

Ref KernelEmitter::int_op(Form form, BinaryOp op, Ref a, Ref b) {
  std::optional<int64_t> x = builder_.int_constant(a), y = builder_.int_constant(b);
  if (x && y) {
    loop::Scalar folded = loop::apply(op, form == Form::i64 ? DType::i64 : DType::i32,
                                      loop::int_scalar(*x), loop::int_scalar(*y));
    return int_of(form, folded.i);
  }
  if (op == BinaryOp::add && x == 0) return b;
  if ((op == BinaryOp::add || op == BinaryOp::sub) && y == 0) return a;
  if (op == BinaryOp::mul && x == 1) return b;
  if (op == BinaryOp::mul && y == 1) return a;
  const IntOps& ops = scalar_ops(form);
  return builder_.op(op == BinaryOp::add   ? ops.add
                     : op == BinaryOp::sub ? ops.sub
                                           : ops.mul,
                     {a, b});
}

std::optional<int64_t> KernelEmitter::uniform_int(Form form, int lanes, const Lanes& x) const {
  if (lanes == 1) return builder_.int_constant(x.ref());
  std::optional<uint64_t> value;
  for (Ref part : x.parts) {
    auto bits = builder_.v128_constant(part);
    if (!bits || bits->low != bits->high || (value && *value != bits->low)) return std::nullopt;
    value = bits->low;
  }
  if (form == Form::i64) return static_cast<int64_t>(*value);
  if (*value >> 32 != (*value & 0xffffffff)) return std::nullopt;
  return static_cast<int32_t>(*value);
}

// `node` is what is computed, for ranges; null when they are not known. `is_narrow`: the result of
// an i64 scalar fits 32 bits.
Lanes KernelEmitter::int_binary(BinaryOp op, DType dtype, int lanes, const loop::Binary* node,
                                bool is_narrow, const Lanes& a, const Lanes& b) {
  if (lanes == 1)
    return {{int_scalar(op, dtype, node, is_narrow, a.ref(), b.ref())}, width_of(dtype)};
  return normalize(dtype, lanes, int_vector(op, dtype, lanes, a, b));
}

Ref KernelEmitter::int_scalar(BinaryOp op, DType dtype, const loop::Binary* node, bool is_narrow,
                              Ref a, Ref b) {
  std::optional<int64_t> x = builder_.int_constant(a), y = builder_.int_constant(b);
  if (x && y) {
    int64_t folded = loop::apply(op, dtype, loop::int_scalar(*x), loop::int_scalar(*y)).i;
    return int_of(fits_i32({folded, folded}) ? Form::i32 : Form::i64, folded);
  }
  Form form = Form::i32;
  if (dtype == DType::i64) {
    // Sums and products need no more than the result's bits; the others need their operands whole.
    bool is_ring = op == BinaryOp::add || op == BinaryOp::sub || op == BinaryOp::mul;
    bool are_small = builder_.type(a) == Type::i32 && builder_.type(b) == Type::i32;
    if (!is_narrow || !(is_ring || are_small)) form = Form::i64;
    a = form == Form::i64 ? as_i64(a) : as_i32(a);
    b = form == Form::i64 ? as_i64(b) : as_i32(b);
  }
  const IntOps& ops = scalar_ops(form);
  auto wrapped = [&](Ref value) { return normalize(dtype, 1, {{value}, 4}).ref(); };
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::mul:
      return wrapped(int_op(form, op, a, b));
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::mod: {
      bool is_natural =
          is_unsigned(dtype) || (node && dtype == DType::i64 && ranges_.of(node->a).min >= 0 &&
                                 ranges_.of(node->b).min >= 0);
      return wrapped(divide(op, form, is_natural, a, b));
    }
    case BinaryOp::min:
      return builder_.op(Op::select, {a, b, builder_.op(ops.lt_s, {a, b})});
    case BinaryOp::max:
      return builder_.op(Op::select, {a, b, builder_.op(ops.gt_s, {a, b})});
    case BinaryOp::bit_and:
      return builder_.op(ops.bit_and, {a, b});
    case BinaryOp::bit_or:
      return builder_.op(ops.bit_or, {a, b});
    case BinaryOp::bit_xor:
      return builder_.op(ops.bit_xor, {a, b});
    case BinaryOp::shift_left:
    case BinaryOp::shift_right:
      return wrapped(shift_scalar(op, dtype, form, a, b));
    default:
      return fail("pow on integers was not expanded");
  }
}

// A zero divisor gives 0; the most negative number divided by -1 wraps. WebAssembly traps on both,
// so divisors that are not constants are replaced by 1 there.
Ref KernelEmitter::divide(BinaryOp op, Form form, bool is_natural, Ref a, Ref b) {
  const IntOps& ops = scalar_ops(form);
  auto constant = [&](int64_t value) { return int_of(form, value); };
  std::optional<int64_t> divisor = builder_.int_constant(b);
  if (divisor && *divisor > 0) {
    bool is_power = std::has_single_bit(static_cast<uint64_t>(*divisor));
    if (is_power && (is_natural || op != BinaryOp::div)) {
      if (op == BinaryOp::mod) return builder_.op(ops.bit_and, {a, constant(*divisor - 1)});
      int shift = std::countr_zero(static_cast<uint64_t>(*divisor));
      return shift == 0 ? a : builder_.op(ops.shr_s, {a, constant(shift)});
    }
    if (is_natural) return builder_.op(op == BinaryOp::mod ? ops.rem_u : ops.div_u, {a, b});
  }
  Ref zero = constant(0), one = constant(1);
  Ref is_zero = builder_.op(ops.eq, {b, zero});
  if (is_natural) {
    Ref safe = builder_.op(Op::select, {one, b, is_zero});
    Ref result = builder_.op(op == BinaryOp::mod ? ops.rem_u : ops.div_u, {a, safe});
    return builder_.op(Op::select, {zero, result, is_zero});
  }
  bool is_plain = divisor && *divisor != 0 && *divisor != -1;
  Ref is_minus_one = builder_.op(ops.eq, {b, constant(-1)});
  Ref is_special = builder_.op(Op::i32_or, {is_zero, is_minus_one});
  Ref safe = is_plain ? b : builder_.op(Op::select, {one, b, is_special});
  Ref quotient = builder_.op(ops.div_s, {a, safe});
  Ref remainder = builder_.op(ops.sub, {a, builder_.op(ops.mul, {quotient, safe})});
  // Rounding down: one less where a remainder and the divisor differ in sign.
  Ref differs = builder_.op(ops.lt_s, {builder_.op(ops.bit_xor, {remainder, safe}), zero});
  Ref is_exact = builder_.op(ops.eq, {remainder, zero});
  Ref is_down = builder_.op(Op::i32_gt_s, {differs, is_exact});
  if (op == BinaryOp::mod) {
    Ref wrapped = builder_.op(ops.add, {remainder, safe});
    Ref result = builder_.op(Op::select, {wrapped, remainder, is_down});
    return is_plain ? result : builder_.op(Op::select, {zero, result, is_special});
  }
  if (op == BinaryOp::floor_div)
    quotient = builder_.op(Op::select, {builder_.op(ops.sub, {quotient, one}), quotient, is_down});
  if (is_plain) return quotient;
  quotient = builder_.op(Op::select, {builder_.op(ops.sub, {zero, a}), quotient, is_minus_one});
  return builder_.op(Op::select, {zero, quotient, is_zero});
}

// Amounts outside of the width shift everything out; WebAssembly's are taken modulo the width.
Ref KernelEmitter::shift_scalar(BinaryOp op, DType dtype, Form form, Ref a, Ref b) {
  const IntOps& ops = scalar_ops(form);
  int width = dtype == DType::i64 && form == Form::i32 ? 64 : loop::dtype_bits(dtype);
  bool is_left = op == BinaryOp::shift_left;
  Op shift = is_left ? ops.shl : ops.shr_s;
  std::optional<int64_t> amount = builder_.int_constant(b);
  if (amount && *amount >= 0 && *amount < (form == Form::i32 ? 32 : 64) && *amount < width)
    return builder_.op(shift, {a, b});
  Ref is_outside =
      builder_.op(ops.ge_u, {b, int_of(form, std::min(width, form == Form::i32 ? 32 : 64))});
  if (is_left)
    return builder_.op(Op::select, {int_of(form, 0), builder_.op(shift, {a, b}), is_outside});
  Ref most = int_of(form, (form == Form::i32 ? 32 : 64) - 1);
  return builder_.op(shift, {a, builder_.op(Op::select, {most, b, is_outside})});
}

Lanes KernelEmitter::int_vector(BinaryOp op, DType dtype, int lanes, const Lanes& a,
                                const Lanes& b) {
  Form form = form_of(dtype);
  int width = width_of(dtype);
  const LaneOps& ops = kLanes[form == Form::i64 ? 1 : 0];
  auto each = [&](Op instruction) {
    return map(lanes, width,
               [&](size_t p) { return builder_.op(instruction, {a.parts[p], b.parts[p]}); });
  };
  auto pick = [&](Op first) { return select_lanes(lanes, each(first), a, b); };
  if (is_shift(op)) return shift_vector(op, dtype, lanes, a, b);
  if (is_division(op)) {
    std::optional<int64_t> divisor = uniform_int(form, lanes, b);
    if (op == BinaryOp::mod && divisor && *divisor > 0 &&
        std::has_single_bit(static_cast<uint64_t>(*divisor))) {
      Ref rest = splat_bits(width, static_cast<uint64_t>(*divisor - 1));
      return map(lanes, width,
                 [&](size_t p) { return builder_.op(Op::v128_and, {a.parts[p], rest}); });
    }
    return per_lane(form, lanes, [&](int lane) {
      Ref by = divisor ? int_of(form, *divisor) : extract(form, b, lane);
      return divide(op, form, is_unsigned(dtype), extract(form, a, lane), by);
    });
  }
  switch (op) {
    case BinaryOp::add:
      return each(ops.add);
    case BinaryOp::sub:
      return each(ops.sub);
    case BinaryOp::mul:
      return each(ops.mul);
    case BinaryOp::min:
      return form == Form::i32 ? each(Op::i32x4_min_s) : pick(ops.lt_s);
    case BinaryOp::max:
      return form == Form::i32 ? each(Op::i32x4_max_s) : pick(ops.gt_s);
    case BinaryOp::bit_and:
      return each(Op::v128_and);
    case BinaryOp::bit_or:
      return each(Op::v128_or);
    case BinaryOp::bit_xor:
      return each(Op::v128_xor);
    default:
      return {std::vector<Ref>(a.parts.size(), fail("pow on integers was not expanded")), width};
  }
}

// The instructions take one amount for all lanes.
Lanes KernelEmitter::shift_vector(BinaryOp op, DType dtype, int lanes, const Lanes& a,
                                  const Lanes& b) {
  Form form = form_of(dtype);
  const LaneOps& ops = kLanes[form == Form::i64 ? 1 : 0];
  std::optional<int64_t> amount = uniform_int(form, lanes, b);
  if (amount && *amount >= 0 && *amount < loop::dtype_bits(dtype)) {
    Ref by = builder_.i32(static_cast<int32_t>(*amount));
    Op shift = op == BinaryOp::shift_left ? ops.shl : ops.shr_s;
    return map(lanes, a.width, [&](size_t p) { return builder_.op(shift, {a.parts[p], by}); });
  }
  return per_lane(form, lanes, [&](int lane) {
    return shift_scalar(op, dtype, form, extract(form, a, lane), extract(form, b, lane));
  });
}

Lanes KernelEmitter::normalize(DType dtype, int lanes, Lanes x) {
  if (dtype != DType::u8 && dtype != DType::i8 && dtype != DType::i16) return x;
  for (Ref& part : x.parts) {
    if (lanes == 1) {
      part = dtype == DType::u8   ? builder_.op(Op::i32_and, {part, builder_.i32(0xff)})
             : dtype == DType::i8 ? builder_.op(Op::i32_extend8_s, {part})
                                  : builder_.op(Op::i32_extend16_s, {part});
    } else if (dtype == DType::u8) {
      part = builder_.op(Op::v128_and, {part, splat_bits(4, 0xff)});
    } else {
      Ref by = builder_.i32(dtype == DType::i8 ? 24 : 16);
      part = builder_.op(Op::i32x4_shr_s, {builder_.op(Op::i32x4_shl, {part, by}), by});
    }
  }
  return x;
}

}  // namespace lathe::wasm
