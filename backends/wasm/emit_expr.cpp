// Expressions: dispatch to arithmetic, conversions and memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"
#include "ir/loop/scalar.h"

namespace lathe::wasm {

using loop::ExprNode;

namespace {

template <class T>
const T* as(Expr e) {
  return std::get_if<T>(&e->kind);
}

// A constant as the bits of a computed lane.
uint64_t bits_of(DType dtype, Expr e) {
  if (auto* number = as<loop::FloatConst>(e)) {
    uint64_t bits = 0;
    auto narrow = static_cast<float>(number->value);
    if (dtype == DType::f64)
      std::memcpy(&bits, &number->value, 8);
    else
      std::memcpy(&bits, &narrow, 4);
    return bits;
  }
  return static_cast<uint64_t>(as<loop::IntConst>(e)->value);
}

}  // namespace

Placed KernelEmitter::emit_node(Expr e) {
  if (as<loop::IntConst>(e) || as<loop::FloatConst>(e)) return emit_constant(e, e->lanes);
  if (auto* splat = as<loop::Splat>(e);
      splat && (as<loop::IntConst>(splat->x) || as<loop::FloatConst>(splat->x)))
    return emit_constant(splat->x, e->lanes);
  if (auto* read = as<loop::VarRead>(e)) {
    const VarValue& var = vars_[read->var.id];
    if (!var.lanes.parts.empty()) return {var.lanes, values_.level_of(values_.slot(read->var))};
    return {failed(fmt::format("variable '{}' has no value here (sizes must be bound)",
                               kernel_.vars[read->var.id].name),
                   *e.node()),
            0};
  }
  if (as<loop::RegRead>(e)) return read_reg(e);
  if (as<loop::Load>(e)) return emit_load(e);
  if (as<loop::Ramp>(e)) return emit_ramp(e);
  if (auto loaded = emit_splat_load(e)) return *loaded;
  if (auto compared = index_compare(e)) return *compared;
  return emit_operator(e);
}

// `lanes` of the scalar or vector constant `e`.
Placed KernelEmitter::emit_constant(Expr e, int lanes) {
  Form form = form_of(e->dtype);
  uint64_t bits = bits_of(e->dtype, e);
  if (lanes > 1) {
    if (e->dtype == DType::b8) bits = bits != 0 ? ~uint64_t{0} : 0;
    int width = width_of(e->dtype);
    uint64_t pair = width == 4 ? (bits & 0xffffffff) | bits << 32 : bits;
    Placed part = vector_constant(pair, pair);
    auto count = static_cast<size_t>(parts_of(lanes, width));
    return {{std::vector<Ref>(count, part.ref()), width}, part.level};
  }
  if (auto* number = as<loop::FloatConst>(e)) {
    Ref ref = form == Form::f64 ? builder_.f64(number->value)
                                : builder_.f32(static_cast<float>(number->value));
    return {{{ref}, width_of(e->dtype)}, 0};
  }
  auto value = static_cast<int64_t>(bits);
  if (form == Form::i64 && fits_i32({value, value})) form = Form::i32;
  return {{{int_of(form, value)}, width_of(e->dtype)}, 0};
}

// In front of the innermost loop that reads it; each once while its scope is open.
Placed KernelEmitter::vector_constant(uint64_t low, uint64_t high) {
  int here = std::min(static_cast<int>(builder_.level()), values_.depth());
  std::pair key{low, high};
  for (int d = here; d >= 0; --d) {
    auto& constants = scopes_[static_cast<size_t>(d)].constants;
    if (auto found = constants.find(key); found != constants.end())
      return {{{found->second}, 4}, d};
  }
  int level = std::min(here, values_.placement(0, true));
  Ref ref = at_level(level, [&] { return builder_.v128(low, high); });
  scopes_[static_cast<size_t>(level)].constants[key] = ref;
  return {{{ref}, 4}, level};
}

Ref KernelEmitter::splat_bits(int width, uint64_t bits) {
  if (width == 4) bits = (bits & 0xffffffff) | bits << 32;
  return vector_constant(bits, bits).ref();
}

// One part for every 16 / width values.
Lanes KernelEmitter::constant_lanes(int width, const std::vector<int64_t>& values) {
  return map(static_cast<int>(values.size()), width, [&](size_t part) {
    uint64_t halves[2] = {0, 0};
    size_t per_part = 16 / static_cast<size_t>(width);
    for (size_t i = 0; i < per_part && part * per_part + i < values.size(); ++i) {
      auto value = static_cast<uint64_t>(values[part * per_part + i]);
      if (width == 8)
        halves[i] = value;
      else
        halves[i / 2] |= (value & 0xffffffff) << (32 * (i % 2));
    }
    return vector_constant(halves[0], halves[1]).ref();
  });
}

Placed KernelEmitter::emit_ramp(Expr e) {
  const auto& ramp = *as<loop::Ramp>(e);
  Placed base = emit(ramp.base);
  int level = values_.placement(base.level, true);
  return {at_level(level,
                   [&] {
                     Ref splat = builder_.op(Op::i64x2_splat, {as_i64(base.ref())});
                     return map(e->lanes, 8, [&](size_t part) {
                       auto first = static_cast<uint64_t>(ramp.stride) * (2 * part);
                       Ref offsets =
                           builder_.v128(first, first + static_cast<uint64_t>(ramp.stride));
                       return builder_.op(Op::i64x2_add, {splat, offsets});
                     });
                   }),
          level};
}

Placed KernelEmitter::emit_operator(Expr e) {
  std::vector<Lanes> operands;
  int level = 0;
  for (Expr child : loop::children(e)) {
    Placed operand = emit(child);
    operands.push_back(operand.lanes);
    level = std::max(level, operand.level);
  }
  if (error_) return {failed("", *e.node()), 0};
  level = values_.placement(level, e->lanes > 1);
  return {at_level(level, [&] { return build(e, operands); }), level};
}

Lanes KernelEmitter::build(Expr e, const std::vector<Lanes>& x) {
  struct Dispatch {
    KernelEmitter& k;
    Expr e;
    const std::vector<Lanes>& x;
    Lanes operator()(const loop::Unary& n) const { return k.unary(n.op, n.x, e->lanes, x[0]); }
    Lanes operator()(const loop::Binary&) const { return k.binary(e, x[0], x[1]); }
    Lanes operator()(const loop::Fma&) const { return k.fma(e, x); }
    Lanes operator()(const loop::PairDot&) const {
      return k.failed("the target has no dot of pairs", *e.node());
    }
    Lanes operator()(const loop::Select&) const { return k.select(e->dtype, e->lanes, x); }
    Lanes operator()(const loop::Cast& n) const {
      return k.cast(n.x->dtype, e->dtype, e->lanes, x[0], !is_float(n.x->dtype) && k.fits_i32(n.x));
    }
    Lanes operator()(const loop::Bitcast& n) const {
      if (n.x->lanes != e->lanes)
        return k.failed("the target has no bits of several lanes in one", *e.node());
      return k.bitcast(n.x->dtype, e->dtype, e->lanes, x[0]);
    }
    Lanes operator()(const loop::Splat&) const { return k.splat(e->dtype, e->lanes, x[0]); }
    Lanes operator()(const loop::Shuffle& n) const { return k.shuffle(n, x[0], x[1]); }
    Lanes operator()(const loop::ReduceLanes& n) const {
      return k.reduce_lanes(n.op, n.x->dtype, n.x->lanes, x[0]);
    }
    Lanes operator()(const loop::Reduce&) const {
      return k.failed("a reduce expression was not scheduled into loops", *e.node());
    }
    Lanes operator()(const loop::Size&) const {
      return k.failed("a size was not lifted", *e.node());
    }
    // Taken by emit_node.
    Lanes operator()(const loop::IntConst&) const { return {}; }
    Lanes operator()(const loop::FloatConst&) const { return {}; }
    Lanes operator()(const loop::VarRead&) const { return {}; }
    Lanes operator()(const loop::Load&) const { return {}; }
    Lanes operator()(const loop::RegRead&) const { return {}; }
    Lanes operator()(const loop::Ramp&) const { return {}; }
  };
  return std::visit(Dispatch{*this, e, x}, e->kind);
}

Lanes KernelEmitter::splat(DType dtype, int lanes, const Lanes& scalar) {
  constexpr Op kSplat[] = {Op::i32x4_splat, Op::i64x2_splat, Op::f32x4_splat, Op::f64x2_splat};
  Form form = form_of(dtype);
  int width = width_of(dtype);
  Ref x = form == Form::i64 ? as_i64(scalar.ref()) : scalar.ref();
  if (dtype == DType::b8)  // 1 becomes a mask
    x = builder_.op(Op::i32_sub, {builder_.i32(0), x});
  Ref part = builder_.op(kSplat[static_cast<size_t>(form)], {x});
  return {std::vector<Ref>(static_cast<size_t>(parts_of(lanes, width)), part), width};
}

Lanes KernelEmitter::fma(Expr e, const std::vector<Lanes>& x) {
  Form form = form_of(e->dtype);
  if (!is_float(e->dtype)) {
    Lanes product = int_binary(BinaryOp::mul, e->dtype, e->lanes, nullptr, false, x[0], x[1]);
    return int_binary(BinaryOp::add, e->dtype, e->lanes, nullptr, false, product, x[2]);
  }
  bool is_double = form == Form::f64;
  if (options_.isa == Isa::simd128) {
    Op mul = is_double ? Op::f64x2_mul : Op::f32x4_mul,
       add = is_double ? Op::f64x2_add : Op::f32x4_add;
    if (e->lanes == 1) {
      mul = is_double ? Op::f64_mul : Op::f32_mul;
      add = is_double ? Op::f64_add : Op::f32_add;
    }
    Lanes sum = x[2];
    for (size_t p = 0; p < sum.parts.size(); ++p)
      sum.parts[p] =
          builder_.op(add, {builder_.op(mul, {x[0].parts[p], x[1].parts[p]}), x[2].parts[p]});
    return round_half(e->dtype, e->lanes, sum);
  }
  Op madd = is_double ? Op::f64x2_relaxed_madd : Op::f32x4_relaxed_madd;
  Lanes sum = x[2];
  if (e->lanes == 1) {
    Op splat = is_double ? Op::f64x2_splat : Op::f32x4_splat;
    Ref vector =
        builder_.op(madd, {builder_.op(splat, {x[0].ref()}), builder_.op(splat, {x[1].ref()}),
                           builder_.op(splat, {x[2].ref()})});
    sum.parts = {extract(form, {{vector}, width_of(e->dtype)}, 0)};
  } else {
    for (size_t p = 0; p < sum.parts.size(); ++p)
      sum.parts[p] = builder_.op(madd, {x[0].parts[p], x[1].parts[p], x[2].parts[p]});
  }
  return round_half(e->dtype, e->lanes, sum);
}

Lanes KernelEmitter::select(DType dtype, int lanes, const std::vector<Lanes>& x) {
  if (lanes == 1) {
    Ref a = x[1].ref(), b = x[2].ref();
    if (builder_.type(a) != builder_.type(b)) {
      a = as_i64(a);
      b = as_i64(b);
    }
    return {{builder_.op(Op::select, {a, b, x[0].ref()})}, width_of(dtype)};
  }
  Lanes a = x[1], b = x[2];
  if (dtype == DType::b8) {
    a = mask_width(lanes, a, x[0].width);
    b = mask_width(lanes, b, x[0].width);
  }
  return select_lanes(lanes, mask_width(lanes, x[0], a.width), a, b);
}

// Where the mask is set, a; masks are all ones or zeros, so any kind of selection will do.
Lanes KernelEmitter::select_lanes(int lanes, const Lanes& mask, const Lanes& a, const Lanes& b) {
  Op op = Op::v128_bitselect;
  if (options_.isa == Isa::relaxed)
    op = a.width == 4 ? Op::i32x4_relaxed_laneselect : Op::i64x2_relaxed_laneselect;
  return map(lanes, a.width,
             [&](size_t p) { return builder_.op(op, {a.parts[p], b.parts[p], mask.parts[p]}); });
}

std::optional<int64_t> KernelEmitter::constant_of(Expr e) {
  return builder_.int_constant(emit(e).ref());
}

// Comparisons of index vectors, which masks are made of: the lanes differ by constants, so one
// scalar decides all of them and 32-bit lanes are enough.
std::optional<Placed> KernelEmitter::index_compare(Expr e) {
  const std::optional<loop::LaneIndex> split = placement::split_compare(e);
  if (!split) return std::nullopt;
  const loop::LaneIndex& parts = *split;
  const BinaryOp op = as<loop::Binary>(e)->op;
  auto [low, high] = std::minmax_element(parts.lanes.begin(), parts.lanes.end());
  const int64_t least = *low - 1, most = *high + 1;
  loop::Interval range = ranges_.of(parts.base);
  bool is_narrow = range.min > INT32_MIN / 2 && range.max < INT32_MAX / 2;

  // lane + rest OP 0, as lane OP -rest with -rest clamped to one beyond the lanes.
  Placed rest = sum(resolve(parts), is_narrow);
  if (std::optional<int64_t> known = builder_.int_constant(rest.ref())) {
    std::vector<int64_t> mask;
    for (int64_t lane : parts.lanes) {
      loop::Scalar a = loop::int_scalar(lane), b = loop::int_scalar(loop::wrapping_sub(0, *known));
      mask.push_back(loop::apply(op, DType::i64, a, b).i != 0 ? -1 : 0);
    }
    return Placed{constant_lanes(4, mask), values_.placement(0, true)};
  }
  int level = values_.placement(rest.level, true);
  Lanes result = at_level(level, [&] {
    Ref bound;
    if (is_narrow) {
      bound = builder_.op(Op::i32_sub, {builder_.i32(0), rest.ref()});
    } else {
      bound = builder_.op(Op::i64_sub, {builder_.i64(0), as_i64(rest.ref())});
      Ref lowest = builder_.i64(least), highest = builder_.i64(most);
      bound = builder_.op(Op::select, {lowest, bound, builder_.op(Op::i64_lt_s, {bound, lowest})});
      bound =
          builder_.op(Op::select, {highest, bound, builder_.op(Op::i64_gt_s, {bound, highest})});
      bound = as_i32(bound);
    }
    Lanes bounds = splat(DType::i32, e->lanes, {{bound}, 4});
    return compare(op, DType::i32, e->lanes, constant_lanes(4, parts.lanes), bounds);
  });
  return Placed{result, level};
}

}  // namespace lathe::wasm
