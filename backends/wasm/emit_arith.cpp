// Arithmetic: the meaning of every operator of loop/node.h in WebAssembly.
#include <fmt/format.h>

#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"
#include "ir/loop/scalar.h"

namespace lathe::wasm {

using loop::ReduceOp;

namespace {

// Instructions on floats: f32, f64, f32x4, f64x2.
struct FloatOps {
  Op neg, abs, sqrt, floor, ceil, trunc, nearest, add, sub, mul, div, min, max;
};
constexpr FloatOps kFloat[] = {
    {Op::f32_neg, Op::f32_abs, Op::f32_sqrt, Op::f32_floor, Op::f32_ceil, Op::f32_trunc,
     Op::f32_nearest, Op::f32_add, Op::f32_sub, Op::f32_mul, Op::f32_div, Op::f32_min, Op::f32_max},
    {Op::f64_neg, Op::f64_abs, Op::f64_sqrt, Op::f64_floor, Op::f64_ceil, Op::f64_trunc,
     Op::f64_nearest, Op::f64_add, Op::f64_sub, Op::f64_mul, Op::f64_div, Op::f64_min, Op::f64_max},
    {Op::f32x4_neg, Op::f32x4_abs, Op::f32x4_sqrt, Op::f32x4_floor, Op::f32x4_ceil, Op::f32x4_trunc,
     Op::f32x4_nearest, Op::f32x4_add, Op::f32x4_sub, Op::f32x4_mul, Op::f32x4_div, Op::f32x4_min,
     Op::f32x4_max},
    {Op::f64x2_neg, Op::f64x2_abs, Op::f64x2_sqrt, Op::f64x2_floor, Op::f64x2_ceil, Op::f64x2_trunc,
     Op::f64x2_nearest, Op::f64x2_add, Op::f64x2_sub, Op::f64x2_mul, Op::f64x2_div, Op::f64x2_min,
     Op::f64x2_max},
};
const FloatOps& float_ops(DType dtype, int lanes) {
  return kFloat[(lanes > 1 ? 2 : 0) + (dtype == DType::f64 ? 1 : 0)];
}

// Comparisons eq, ne, lt, le, gt, ge by form, of scalars and of lanes.
constexpr Op kCompare[2][4][6] = {
    {{Op::i32_eq, Op::i32_ne, Op::i32_lt_s, Op::i32_le_s, Op::i32_gt_s, Op::i32_ge_s},
     {Op::i64_eq, Op::i64_ne, Op::i64_lt_s, Op::i64_le_s, Op::i64_gt_s, Op::i64_ge_s},
     {Op::f32_eq, Op::f32_ne, Op::f32_lt, Op::f32_le, Op::f32_gt, Op::f32_ge},
     {Op::f64_eq, Op::f64_ne, Op::f64_lt, Op::f64_le, Op::f64_gt, Op::f64_ge}},
    {{Op::i32x4_eq, Op::i32x4_ne, Op::i32x4_lt_s, Op::i32x4_le_s, Op::i32x4_gt_s, Op::i32x4_ge_s},
     {Op::i64x2_eq, Op::i64x2_ne, Op::i64x2_lt_s, Op::i64x2_le_s, Op::i64x2_gt_s, Op::i64x2_ge_s},
     {Op::f32x4_eq, Op::f32x4_ne, Op::f32x4_lt, Op::f32x4_le, Op::f32x4_gt, Op::f32x4_ge},
     {Op::f64x2_eq, Op::f64x2_ne, Op::f64x2_lt, Op::f64x2_le, Op::f64x2_gt, Op::f64x2_ge}},
};

}  // namespace

Lanes KernelEmitter::unary(UnaryOp op, Expr e, int lanes, const Lanes& x) {
  DType dtype = e->dtype;
  bool floating = is_float(dtype);
  const FloatOps& ops = float_ops(dtype, lanes);
  auto each = [&](Op instruction) {
    return map(lanes == 1 ? 1 : lanes, x.width,
               [&](size_t p) { return builder_.op(instruction, {x.parts[p]}); });
  };
  auto zero = [&]() -> Lanes {
    if (lanes > 1) return {std::vector<Ref>(x.parts.size(), splat_bits(4, 0)), x.width};
    return {{dtype == DType::f64   ? builder_.f64(0)
             : floating            ? builder_.f32(0)
             : dtype == DType::i64 ? builder_.i64(0)
                                   : builder_.i32(0)},
            x.width};
  };
  switch (op) {
    case UnaryOp::neg:
      if (dtype == DType::b8) return x;
      if (floating) return each(ops.neg);
      return int_binary(BinaryOp::sub, dtype, lanes, nullptr, fits_i32(e), zero(), x);
    case UnaryOp::abs: {
      if (floating) return each(ops.abs);
      if (is_unsigned(dtype)) return x;
      Lanes negated = int_binary(BinaryOp::sub, dtype, lanes, nullptr, false, zero(), x);
      Lanes is_negative = compare(BinaryOp::lt, dtype, lanes, x, zero());
      return select(dtype, lanes, {is_negative, negated, x});
    }
    case UnaryOp::sqrt:
      return round_half(dtype, lanes, each(ops.sqrt));
    case UnaryOp::floor:
      return floating ? round_half(dtype, lanes, each(ops.floor)) : x;
    case UnaryOp::ceil:
      return floating ? round_half(dtype, lanes, each(ops.ceil)) : x;
    case UnaryOp::trunc:
      return floating ? round_half(dtype, lanes, each(ops.trunc)) : x;
    case UnaryOp::round_even:
      return floating ? round_half(dtype, lanes, each(ops.nearest)) : x;
    case UnaryOp::logical_not:
      if (dtype == DType::b8)
        return lanes == 1 ? Lanes{{builder_.op(Op::i32_eqz, {x.ref()})}, 4} : each(Op::v128_not);
      return compare(BinaryOp::eq, dtype, lanes, x, zero());
    case UnaryOp::bit_not:
      if (lanes > 1)
        return dtype == DType::u8 ? normalize(dtype, lanes, each(Op::v128_not))
                                  : each(Op::v128_not);
      if (dtype == DType::b8) return {{builder_.op(Op::i32_eqz, {x.ref()})}, 4};
      return int_binary(BinaryOp::sub, dtype, 1, nullptr, false,
                        {{dtype == DType::i64 ? builder_.i64(-1) : builder_.i32(-1)}, x.width}, x);
    case UnaryOp::is_nan:
      if (floating) return compare(BinaryOp::ne, dtype, lanes, x, x);
      return lanes == 1 ? Lanes{{builder_.i32(0)}, 4}
                        : Lanes{std::vector<Ref>(x.parts.size(), splat_bits(4, 0)), x.width};
    default:
      return {std::vector<Ref>(x.parts.size(), fail("a mathematical function was not expanded")),
              x.width};
  }
}

Lanes KernelEmitter::binary(Expr e, const Lanes& a, const Lanes& b) {
  const auto& node = std::get<loop::Binary>(e->kind);
  DType dtype = node.a->dtype;
  if (loop::is_compare(node.op)) return compare(node.op, dtype, e->lanes, a, b);
  if (is_float(dtype)) return float_binary(node.op, dtype, e->lanes, node.a, node.b, a, b);
  if (dtype == DType::b8) return bool_binary(node.op, e->lanes, a, b);
  bool is_narrow = dtype == DType::i64 && e->lanes == 1 && fits_i32(e);
  return int_binary(node.op, dtype, e->lanes, &node, is_narrow, a, b);
}

Lanes KernelEmitter::float_binary(BinaryOp op, DType dtype, int lanes, Expr ea, Expr eb,
                                  const Lanes& a, const Lanes& b) {
  const FloatOps& ops = float_ops(dtype, lanes);
  auto each = [&](Op instruction) {
    return map(lanes, a.width,
               [&](size_t p) { return builder_.op(instruction, {a.parts[p], b.parts[p]}); });
  };
  switch (op) {
    case BinaryOp::add:
      return round_half(dtype, lanes, each(ops.add));
    case BinaryOp::sub:
      return round_half(dtype, lanes, each(ops.sub));
    case BinaryOp::mul:
      return round_half(dtype, lanes, each(ops.mul));
    case BinaryOp::div:
      return round_half(dtype, lanes, each(ops.div));
    case BinaryOp::min:
    case BinaryOp::max:
      return min_max(op == BinaryOp::min, dtype, lanes, placement::is_number(ea),
                     placement::is_number(eb), a, b);
    default:
      return {std::vector<Ref>(a.parts.size(),
                               fail("a float operation that targets do not have was not expanded")),
              a.width};
  }
}

// pmin(a, b) is `b < a ? b : a`: one instruction, which gives a when either is NaN. So a side that
// cannot be NaN goes second and that is enough; otherwise NaN in `b` is put back. (f32x4.min would
// do it, in more instructions of the machine.)
Lanes KernelEmitter::min_max(bool is_min, DType dtype, int lanes, bool a_is_number,
                             bool b_is_number, const Lanes& a, const Lanes& b) {
  if (lanes == 1) {
    const FloatOps& ops = float_ops(dtype, 1);
    return {{builder_.op(is_min ? ops.min : ops.max, {a.ref(), b.ref()})}, a.width};
  }
  if (a_is_number && !b_is_number)
    return min_max(is_min, dtype, lanes, b_is_number, a_is_number, b, a);
  bool is_double = dtype == DType::f64;
  Op pick = is_double ? (is_min ? Op::f64x2_pmin : Op::f64x2_pmax)
                      : (is_min ? Op::f32x4_pmin : Op::f32x4_pmax);
  Lanes picked =
      map(lanes, a.width, [&](size_t p) { return builder_.op(pick, {a.parts[p], b.parts[p]}); });
  if (b_is_number) return picked;
  return select_lanes(lanes, compare(BinaryOp::ne, dtype, lanes, b, b), b, picked);
}

Lanes KernelEmitter::bool_binary(BinaryOp op, int lanes, Lanes a, Lanes b) {
  if (lanes > 1) b = mask_width(lanes, b, a.width);
  auto each = [&](Op scalar, Op vector) {
    return map(lanes, a.width, [&](size_t p) {
      return builder_.op(lanes == 1 ? scalar : vector, {a.parts[p], b.parts[p]});
    });
  };
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::max:
    case BinaryOp::bit_or:
      return each(Op::i32_or, Op::v128_or);
    case BinaryOp::sub:
    case BinaryOp::bit_xor:
      return each(Op::i32_xor, Op::v128_xor);
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::bit_and:
    case BinaryOp::div:
    case BinaryOp::floor_div:
      return each(Op::i32_and, Op::v128_and);
    case BinaryOp::mod:
      if (lanes == 1) return {{builder_.i32(0)}, 4};
      return {std::vector<Ref>(a.parts.size(), splat_bits(4, 0)), a.width};
    case BinaryOp::shift_left:  // one bit: any shift moves it out
    case BinaryOp::shift_right:
      return each(Op::i32_gt_s, Op::v128_andnot);
    default:
      return {std::vector<Ref>(a.parts.size(), fail("pow on bools was not expanded")), a.width};
  }
}

Lanes KernelEmitter::compare(BinaryOp op, DType dtype, int lanes, Lanes a, Lanes b) {
  auto which = static_cast<size_t>(op) - static_cast<size_t>(BinaryOp::eq);
  Form form = form_of(dtype);
  if (lanes == 1) {
    if (form == Form::i64) {
      bool is_narrow = builder_.type(a.ref()) == Type::i32 && builder_.type(b.ref()) == Type::i32;
      if (is_narrow) form = Form::i32;
      std::optional<int64_t> x = builder_.int_constant(a.ref()), y = builder_.int_constant(b.ref());
      if (x && y)
        return {{builder_.i32(static_cast<int32_t>(
                    loop::apply(op, DType::i64, loop::int_scalar(*x), loop::int_scalar(*y)).i))},
                4};
      if (!is_narrow) {
        a.parts = {as_i64(a.ref())};
        b.parts = {as_i64(b.ref())};
      }
    }
    return {{builder_.op(kCompare[0][static_cast<size_t>(form)][which], {a.ref(), b.ref()})}, 4};
  }
  if (dtype == DType::b8) b = mask_width(lanes, b, a.width);
  // Masks are -1 and 0: as integers, true is less.
  constexpr size_t kSwapped[] = {0, 1, 4, 5, 2, 3};
  if (dtype == DType::b8) which = kSwapped[which];
  if (dtype == DType::b8 && a.width == 8) form = Form::i64;
  Op instruction = kCompare[1][static_cast<size_t>(form)][which];
  return map(lanes, a.width,
             [&](size_t p) { return builder_.op(instruction, {a.parts[p], b.parts[p]}); });
}

Lanes KernelEmitter::combine(ReduceOp op, DType dtype, int lanes, const Lanes& a, const Lanes& b) {
  BinaryOp binary;
  switch (op) {
    case ReduceOp::sum:
      binary = BinaryOp::add;
      break;
    case ReduceOp::prod:
      binary = BinaryOp::mul;
      break;
    case ReduceOp::max:
      binary = BinaryOp::max;
      break;
    case ReduceOp::min:
      binary = BinaryOp::min;
      break;
    case ReduceOp::any:
      binary = BinaryOp::bit_or;
      break;
    case ReduceOp::all:
      binary = BinaryOp::bit_and;
      break;
    default:
      fail("lanes cannot be reduced by argmax or argmin");
      return a;
  }
  if (dtype == DType::b8) return bool_binary(binary, lanes, a, b);
  if (!is_float(dtype)) return int_binary(binary, dtype, lanes, nullptr, false, a, b);
  if (op == ReduceOp::max || op == ReduceOp::min)
    return min_max(op == ReduceOp::min, dtype, lanes, false, false, a, b);
  const FloatOps& ops = float_ops(dtype, lanes);
  Op instruction = op == ReduceOp::sum ? ops.add : ops.mul;
  return round_half(dtype, lanes, map(lanes, a.width, [&](size_t p) {
                      return builder_.op(instruction, {a.parts[p], b.parts[p]});
                    }));
}

Lanes KernelEmitter::reduce_lanes(ReduceOp op, DType dtype, int lanes, Lanes x) {
  if (lanes == 1) return x;
  if ((lanes & (lanes - 1)) != 0) {
    Ref ref = fail(fmt::format("{} lanes are reduced, expected a power of two", lanes));
    return {{ref}, x.width};
  }
  for (int half = lanes / 2; half > 0; half /= 2) {
    int per_part = 16 / x.width;
    Lanes low = x, high = x;
    if (half >= per_part) {
      auto middle = static_cast<std::ptrdiff_t>(half / per_part);
      low.parts.assign(x.parts.begin(), x.parts.begin() + middle);
      high.parts.assign(x.parts.begin() + middle, x.parts.end());
    } else {
      Ref part = x.ref();
      low.parts = {part};
      high.parts = {half * x.width == 8 ? shuffle_words(part, part, 2, 3, 2, 3)
                                        : shuffle_words(part, part, 1, 1, 1, 1)};
    }
    x = combine(op, dtype, std::max(half, 2), low, high);  // one lane is computed as a vector
  }
  Form form = form_of(dtype);
  if (dtype == DType::b8) {
    Ref word = builder_.op(Op::i32x4_extract_lane, {x.ref()});
    return {{builder_.op(Op::i32_and, {word, builder_.i32(1)})}, 4};
  }
  return {{extract(form, x, 0)}, x.width};
}

}  // namespace lathe::wasm
