// Casts, and the two forms of a value: as computed and as stored. Halves are f32 computed (holding
// exactly a value of the narrow type) and 16 bits stored; their conversions are integer arithmetic
// on lanes, which scalars borrow.
#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"

namespace lathe::wasm {
Ref KernelEmitter::extract(Form form, const Lanes& x, int lane) {
  constexpr Op kExtract[] = {Op::i32x4_extract_lane, Op::i64x2_extract_lane, Op::f32x4_extract_lane,
                             Op::f64x2_extract_lane};
  int per_part = 16 / x.width;
  Op op = kExtract[static_cast<size_t>(form)];
  return builder_.op(op, {x.parts[static_cast<size_t>(lane / per_part)]},
                     {.op = op, .lane = static_cast<uint32_t>(lane % per_part)});
}

Lanes KernelEmitter::mask_width(int lanes, const Lanes& mask, int width) {
  if (mask.width == width || lanes == 1) return mask;
  if (width == 4) return narrow_lanes(lanes, mask);
  return map(lanes, 8, [&](size_t p) {
    Op op = p % 2 == 0 ? Op::i64x2_extend_low_i32x4_s : Op::i64x2_extend_high_i32x4_s;
    return builder_.op(op, {mask.parts[p / 2]});
  });
}

Lanes KernelEmitter::narrow_lanes(int lanes, const Lanes& x) {
  return map(lanes, 4, [&](size_t p) {
    Ref low = x.parts[2 * p], high = 2 * p + 1 < x.parts.size() ? x.parts[2 * p + 1] : low;
    return shuffle_words(low, high, 0, 2, 4, 6);
  });
}

// ---- halves -------------------------------------------------------------------------------------

// To nearest with ties to even, in f32: normal numbers by adding half a unit to the bits, subnormal
// ones by the rounding of a sum with 0.5, whose last place is theirs.
Ref KernelEmitter::round_f16(Ref x) {
  auto c = [&](uint32_t bits) { return splat_bits(4, bits); };
  auto op = [&](Op o, Ref a, Ref b) { return builder_.op(o, {a, b}); };
  auto pick = [&](Ref a, Ref b, Ref mask) {
    return select_lanes(4, {{mask}, 4}, {{a}, 4}, {{b}, 4}).ref();
  };
  Ref magnitude = op(Op::v128_and, x, c(0x7fffffff));
  Ref sign = op(Op::v128_xor, x, magnitude);
  Ref odd = op(Op::v128_and, builder_.op(Op::i32x4_shr_u, {magnitude, builder_.i32(13)}), c(1));
  Ref sum = op(Op::i32x4_add, magnitude, op(Op::i32x4_add, odd, c(0xfff)));
  Ref normal = op(Op::v128_and, sum, c(0xffffe000));
  normal = pick(c(0x7f800000), normal, op(Op::i32x4_gt_s, normal, c(0x477fffff)));
  Ref half = c(0x3f000000);
  Ref small = op(Op::f32x4_sub, op(Op::f32x4_add, magnitude, half), half);
  Ref rounded = pick(small, normal, op(Op::i32x4_lt_s, magnitude, c(0x38800000)));
  rounded = pick(magnitude, rounded, op(Op::i32x4_gt_s, magnitude, c(0x7f800000)));
  return op(Op::v128_or, rounded, sign);
}

// To the nearest with ties to even by integer arithmetic; a NaN keeps its top bits and stays one.
Ref KernelEmitter::round_bf16(Ref x) {
  auto c = [&](uint32_t bits) { return splat_bits(4, bits); };
  auto op = [&](Op o, Ref a, Ref b) { return builder_.op(o, {a, b}); };
  Ref odd = op(Op::v128_and, builder_.op(Op::i32x4_shr_u, {x, builder_.i32(16)}), c(1));
  Ref nearest = op(Op::i32x4_add, x, op(Op::i32x4_add, odd, c(0x7fff)));
  Ref quiet = op(Op::v128_or, x, c(0x400000));
  Ref is_nan = op(Op::f32x4_ne, x, x);
  Ref bits = select_lanes(4, {{is_nan}, 4}, {{quiet}, 4}, {{nearest}, 4}).ref();
  return op(Op::v128_and, bits, c(0xffff0000));
}

// Of a value that f16 holds: the exponent is rebased by a product with 2^-112, which is exact, and
// makes its subnormals ours.
Ref KernelEmitter::f16_bits(Ref x) {
  auto c = [&](uint32_t bits) { return splat_bits(4, bits); };
  auto op = [&](Op o, Ref a, Ref b) { return builder_.op(o, {a, b}); };
  Ref magnitude = op(Op::v128_and, x, c(0x7fffffff));
  Ref sign = builder_.op(Op::i32x4_shr_u, {op(Op::v128_xor, x, magnitude), builder_.i32(16)});
  Ref rebased = op(Op::f32x4_mul, magnitude, c(0x07800000));  // 2^-112
  Ref bits = builder_.op(Op::i32x4_shr_u, {rebased, builder_.i32(13)});
  Ref is_nan = op(Op::i32x4_gt_s, magnitude, c(0x7f800000));
  Ref is_special = op(Op::i32x4_gt_s, magnitude, c(0x7f7fffff));
  Ref special = op(Op::v128_or, c(0x7c00), op(Op::v128_and, is_nan, c(0x200)));
  bits = select_lanes(4, {{is_special}, 4}, {{special}, 4}, {{bits}, 4}).ref();
  return op(Op::v128_or, bits, sign);
}

Ref KernelEmitter::f16_value(Ref bits) {
  auto c = [&](uint32_t value) { return splat_bits(4, value); };
  auto op = [&](Op o, Ref a, Ref b) { return builder_.op(o, {a, b}); };
  Ref magnitude = op(Op::v128_and, bits, c(0x7fff));
  Ref sign = op(Op::v128_xor, bits, magnitude);
  Ref shifted = builder_.op(Op::i32x4_shl, {magnitude, builder_.i32(13)});
  Ref value = op(Op::f32x4_mul, shifted, c(0x77800000));  // 2^112
  Ref is_special = op(Op::i32x4_gt_s, magnitude, c(0x7bff));
  Ref exponent = op(Op::v128_and, is_special, c(0x7f800000));
  return op(Op::v128_or, op(Op::v128_or, value, exponent),
            builder_.op(Op::i32x4_shl, {sign, builder_.i32(16)}));
}

Lanes KernelEmitter::round_half(DType dtype, int lanes, Lanes x) {
  if (!is_half(dtype)) return x;
  auto round = [&](Ref part) { return dtype == DType::f16 ? round_f16(part) : round_bf16(part); };
  for (Ref& part : x.parts) part = lanes == 1 ? through_vector(round, part) : round(part);
  return x;
}

// `part` has the stored bits in a lane each: sign-extended integers, zero-extended others.
Ref KernelEmitter::from_raw(DType dtype, Ref part) {
  if (dtype == DType::f16) return f16_value(part);
  if (dtype == DType::bf16) return builder_.op(Op::i32x4_shl, {part, builder_.i32(16)});
  if (dtype == DType::b8) return builder_.op(Op::i32x4_ne, {part, splat_bits(4, 0)});
  return part;
}

Ref KernelEmitter::to_raw(DType dtype, Ref part) {
  if (dtype == DType::f16) return f16_bits(part);
  if (dtype == DType::bf16) return builder_.op(Op::i32x4_shr_u, {part, builder_.i32(16)});
  if (dtype == DType::b8) return builder_.op(Op::v128_and, {part, splat_bits(4, 1)});
  return part;
}

// ---- casts --------------------------------------------------------------------------------------

// `is_small`: an integer that 32 bits hold.
Lanes KernelEmitter::cast(DType from, DType to, int lanes, const Lanes& x, bool is_small) {
  if (from == to) return x;
  return lanes == 1 ? cast_scalar(from, to, x.ref()) : cast_lanes(from, to, lanes, x, is_small);
}

Lanes KernelEmitter::cast_scalar(DType from, DType to, Ref x) {
  Form target = form_of(to);
  auto result = [&](Ref ref) { return Lanes{{ref}, width_of(to)}; };
  auto op = [&](Op o) { return builder_.op(o, {x}); };
  bool is_double = from == DType::f64;
  if (to == DType::b8) {
    if (is_float(from))
      return result(builder_.op(is_double ? Op::f64_ne : Op::f32_ne,
                                {x, is_double ? builder_.f64(0) : builder_.f32(0)}));
    bool is_wide = builder_.type(x) == Type::i64;
    return result(builder_.op(is_wide ? Op::i64_ne : Op::i32_ne,
                              {x, is_wide ? builder_.i64(0) : builder_.i32(0)}));
  }
  if (is_float(from) && is_float(to)) {
    Ref y = target == Form::f64 ? op(Op::f64_promote_f32) : is_double ? op(Op::f32_demote_f64) : x;
    return round_half(to, 1, result(y));
  }
  if (is_float(from)) {
    if (target == Form::i64)
      return result(op(is_double ? Op::i64_trunc_sat_f64_s : Op::i64_trunc_sat_f32_s));
    return normalize(to, 1,
                     result(op(is_double ? Op::i32_trunc_sat_f64_s : Op::i32_trunc_sat_f32_s)));
  }
  bool is_wide = builder_.type(x) == Type::i64;
  if (is_float(to)) {
    if (target == Form::f64)
      return result(op(is_wide ? Op::f64_convert_i64_s : Op::f64_convert_i32_s));
    return round_half(to, 1, result(op(is_wide ? Op::f32_convert_i64_s : Op::f32_convert_i32_s)));
  }
  if (target == Form::i64) return result(x);  // an i32 stands for it
  return normalize(to, 1, result(as_i32(x)));
}

Lanes KernelEmitter::cast_lanes(DType from, DType to, int lanes, const Lanes& x, bool is_small) {
  if (from == DType::b8) {
    Lanes bits = mask_width(lanes, x, 4);
    for (Ref& part : bits.parts) part = builder_.op(Op::v128_and, {part, splat_bits(4, 1)});
    return to == DType::i32 ? bits : cast_lanes(DType::i32, to, lanes, bits, true);
  }
  if (to == DType::b8) {
    Lanes zero{std::vector<Ref>(x.parts.size(), splat_bits(4, 0)), x.width};
    return compare(BinaryOp::ne, from, lanes, x, zero);
  }
  Form source = form_of(from), target = form_of(to);
  // One instruction for each part, of one part or half of one.
  auto each = [&](Op o, const Lanes& y) {
    return map(lanes, y.width, [&](size_t p) { return builder_.op(o, {y.parts[p]}); });
  };
  auto widened = [&](Op o) {
    return map(lanes, 8, [&](size_t p) {
      Ref part = x.parts[p / 2];
      return builder_.op(o, {p % 2 == 0 ? part : shuffle_words(part, part, 2, 3, 2, 3)});
    });
  };
  auto joined = [&](Op o) {
    return map(lanes, 4, [&](size_t p) {
      Ref low = builder_.op(o, {x.parts[2 * p]});
      if (2 * p + 1 >= x.parts.size()) return low;
      return shuffle_words(low, builder_.op(o, {x.parts[2 * p + 1]}), 0, 1, 4, 5);
    });
  };
  auto one_by_one = [&](Op o) {
    return per_lane(target, lanes,
                    [&](int lane) { return builder_.op(o, {extract(source, x, lane)}); });
  };
  if (is_float(from) && is_float(to)) {
    Lanes y = source == target      ? x
              : target == Form::f64 ? widened(Op::f64x2_promote_low_f32x4)
                                    : joined(Op::f32x4_demote_f64x2_zero);
    return round_half(to, lanes, y);
  }
  if (is_float(from)) {
    if (target == Form::i64)
      return one_by_one(source == Form::f64 ? Op::i64_trunc_sat_f64_s : Op::i64_trunc_sat_f32_s);
    return normalize(to, lanes,
                     source == Form::f64 ? joined(Op::i32x4_trunc_sat_f64x2_s_zero)
                                         : each(Op::i32x4_trunc_sat_f32x4_s, x));
  }
  if (source == Form::i64 && (is_small || target == Form::i32) && target != Form::i64)
    return to == DType::i32 ? narrow_lanes(lanes, x)
                            : cast_lanes(DType::i32, to, lanes, narrow_lanes(lanes, x), true);
  if (is_float(to)) {
    if (source == Form::i64)
      return round_half(
          to, lanes,
          one_by_one(target == Form::f64 ? Op::f64_convert_i64_s : Op::f32_convert_i64_s));
    if (target == Form::f64) return widened(Op::f64x2_convert_low_i32x4_s);
    return round_half(to, lanes, each(Op::f32x4_convert_i32x4_s, x));
  }
  if (target == Form::i64)
    return map(lanes, 8, [&](size_t p) {
      Op o = p % 2 == 0 ? Op::i64x2_extend_low_i32x4_s : Op::i64x2_extend_high_i32x4_s;
      return builder_.op(o, {x.parts[p / 2]});
    });
  return normalize(to, lanes, x);
}

// Between dtypes of one width.
Lanes KernelEmitter::bitcast(DType from, DType to, int lanes, const Lanes& x) {
  if (from == to) return x;
  if (lanes == 1 && width_of(from) == 8) {
    Ref bits = is_float(from) ? builder_.op(Op::i64_reinterpret_f64, {x.ref()}) : as_i64(x.ref());
    return {{is_float(to) ? builder_.op(Op::f64_reinterpret_i64, {bits}) : bits}, 8};
  }
  if (width_of(from) == 8 || (dtype_bytes(from) == 4 && lanes > 1)) return x;
  if (lanes == 1 && dtype_bytes(from) == 4)
    return {
        {builder_.op(is_float(to) ? Op::f32_reinterpret_i32 : Op::i32_reinterpret_f32, {x.ref()})},
        4};
  auto through = [&](Ref part) {
    Ref raw = to_raw(from, part);
    if (is_half(to)) raw = builder_.op(Op::v128_and, {raw, splat_bits(4, 0xffff)});
    return normalize(to, 2, {{from_raw(to, raw)}, 4}).ref();
  };
  if (lanes > 1) {
    Lanes y = from == DType::b8 ? mask_width(lanes, x, 4) : x;
    return map(lanes, 4, [&](size_t p) { return through(y.parts[p]); });
  }
  if (from == DType::b8 || to == DType::b8)
    return cast_scalar(from == DType::b8 ? DType::i32 : from, to, x.ref());
  if (!is_half(from) && !is_half(to)) return normalize(to, 1, x);
  Ref vector = builder_.op(is_half(from) ? Op::f32x4_splat : Op::i32x4_splat, {x.ref()});
  return {{extract(is_half(to) ? Form::f32 : Form::i32, {{through(vector)}, 4}, 0)}, 4};
}

}  // namespace lathe::wasm
