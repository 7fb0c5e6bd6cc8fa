// Loads: bits from memory in a lane each, and from there to the computed form.
#include <algorithm>

#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"

namespace lathe::wasm {
namespace {

// The form that raw_scalar gives: halves are still bits.
Form raw_form(DType dtype) { return is_half(dtype) ? Form::i32 : form_of(dtype); }

}  // namespace

int KernelEmitter::level_of_load(Expr e, const Index& index, int mask_level) {
  const auto& load = std::get<loop::Load>(e->kind);
  int level = std::max(mask_level, values_.level_of(values_.slot(load.buffer)));
  for (const auto& [vector, factor] : index.vectors) level = std::max(level, emit(vector).level);
  for (const Term& term : index.terms) level = std::max(level, term.placed.level);
  return level;
}

Placed KernelEmitter::emit_load(Expr e) {
  const auto& load = std::get<loop::Load>(e->kind);
  Index index = resolve(splits_.of(load.index));
  Placed mask = load.mask ? emit(load.mask) : Placed{};
  if (error_) return {failed("", *e.node()), 0};
  int level = values_.placement_of_load(level_of_load(e, index, mask.level), e->lanes > 1);
  Address at = address(load.buffer, index);
  level = std::max(level, at.level);
  const Lanes* on = load.mask ? &mask.lanes : nullptr;
  Lanes result = at_level(level, [&] {
    if (e->lanes > 1 && on) mask.lanes = mask_width(e->lanes, mask.lanes, width_of(e->dtype));
    bool is_contiguous =
        index.lanes.empty() || (index.vectors.empty() && loop::lane_stride(index.lanes) == 1);
    if (e->lanes == 1 && on)
      return masked_scalar_load(e->dtype, at.pointer, at.offset, load.buffer, on->ref());
    if (is_contiguous) return contiguous_load(e->dtype, e->lanes, at, on);
    return scattered_load(e->dtype, e->lanes, index, at, load.buffer, on);
  });
  return {result, level};
}

// splat(load x) in one instruction; nothing for other expressions.
std::optional<Placed> KernelEmitter::emit_splat_load(Expr e) {
  auto* node = std::get_if<loop::Splat>(&e->kind);
  auto* load = node ? std::get_if<loop::Load>(&node->x->kind) : nullptr;
  int64_t bytes = dtype_bytes(e->dtype);
  if (!load || load->mask || bytes < 4) return std::nullopt;
  Index index = resolve(splits_.of(load->index));
  if (error_) return Placed{failed("", *e.node()), 0};
  int level = values_.placement_of_load(level_of_load(node->x, index, 0), true);
  Address at = address(load->buffer, index);
  level = std::max(level, at.level);
  Op op = bytes == 4 ? Op::v128_load32_splat : Op::v128_load64_splat;
  Ref part = at_level(level, [&] { return builder_.op(op, {at.pointer}, {op, at.offset}); });
  int width = width_of(e->dtype);
  return Placed{{std::vector<Ref>(static_cast<size_t>(parts_of(e->lanes, width)), part), width},
                level};
}

Ref KernelEmitter::raw_scalar(DType dtype, Ref pointer, int64_t offset) {
  Op op = Op::i32_load;
  switch (dtype) {
    case DType::b8:
    case DType::u8:
      op = Op::i32_load8_u;
      break;
    case DType::i8:
      op = Op::i32_load8_s;
      break;
    case DType::i16:
      op = Op::i32_load16_s;
      break;
    case DType::f16:
    case DType::bf16:
      op = Op::i32_load16_u;
      break;
    case DType::i32:
      break;
    case DType::i64:
      op = Op::i64_load;
      break;
    case DType::f32:
      op = Op::f32_load;
      break;
    case DType::f64:
      op = Op::f64_load;
      break;
  }
  return builder_.op(op, {pointer}, {op, static_cast<uint32_t>(offset)});
}

// A scalar from its stored bits.
Lanes KernelEmitter::scalar_of_raw(DType dtype, Ref raw) {
  if (dtype == DType::b8) return {{builder_.op(Op::i32_ne, {raw, builder_.i32(0)})}, 4};
  if (dtype == DType::bf16)
    return {
        {builder_.op(Op::f32_reinterpret_i32, {builder_.op(Op::i32_shl, {raw, builder_.i32(16)})})},
        4};
  if (dtype != DType::f16) return {{raw}, width_of(dtype)};
  Ref vector = f16_value(builder_.op(Op::i32x4_splat, {raw}));
  return {{extract(Form::f32, {{vector}, 4}, 0)}, 4};
}

// Branchless: a disabled load reads the buffer's start, and its value is not taken.
Lanes KernelEmitter::masked_scalar_load(DType dtype, Ref pointer, int64_t offset,
                                        loop::BufferRef buffer, Ref mask) {
  Ref there = int_op(Form::i32, BinaryOp::add, pointer, int_of(Form::i32, offset));
  Ref from = builder_.op(Op::select, {there, buffers_[buffer.id], mask});
  Ref raw = raw_scalar(dtype, from, 0);
  Ref zero;
  switch (raw_form(dtype)) {
    case Form::i32:
      zero = builder_.i32(0);
      break;
    case Form::i64:
      zero = builder_.i64(0);
      break;
    case Form::f32:
      zero = builder_.f32(0);
      break;
    case Form::f64:
      zero = builder_.f64(0);
      break;
  }
  return scalar_of_raw(dtype, builder_.op(Op::select, {raw, zero, mask}));
}

// `count` neighbouring elements, in a lane each.
Ref KernelEmitter::raw_part(DType dtype, Ref pointer, int64_t offset, int count) {
  auto at = static_cast<uint32_t>(offset);
  int64_t bytes = dtype_bytes(dtype);
  if (count < 16 / width_of(dtype))
    return per_lane(raw_form(dtype), count,
                    [&](int lane) { return raw_scalar(dtype, pointer, offset + lane * bytes); })
        .ref();
  if (bytes >= 4) return builder_.op(Op::v128_load, {pointer}, {Op::v128_load, at});
  if (bytes == 2) {
    Op op = dtype == DType::i16 ? Op::i32x4_load16x4_s : Op::i32x4_load16x4_u;
    return builder_.op(op, {pointer}, {op, at});
  }
  bool is_signed = dtype == DType::i8;
  Ref packed = builder_.op(Op::v128_load32_zero, {pointer}, {Op::v128_load32_zero, at});
  Ref pairs = builder_.op(is_signed ? Op::i16x8_extend_low_i8x16_s : Op::i16x8_extend_low_i8x16_u,
                          {packed});
  return builder_.op(is_signed ? Op::i32x4_extend_low_i16x8_s : Op::i32x4_extend_low_i16x8_u,
                     {pairs});
}

Ref KernelEmitter::mask_bit(Ref mask, int width, int lane) {
  auto word = static_cast<uint32_t>(lane * width / 4);
  return builder_.op(Op::i32x4_extract_lane, {mask}, {.op = Op::i32x4_extract_lane, .lane = word});
}

Ref KernelEmitter::all_true(Ref mask, int width) {
  return builder_.op(width == 4 ? Op::i32x4_all_true : Op::i64x2_all_true, {mask});
}

// All lanes at once where all are enabled, one by one elsewhere.
Ref KernelEmitter::masked_part(DType dtype, const Address& at, int64_t offset, int count,
                               Ref mask) {
  constexpr Op kReplace[] = {Op::i32x4_replace_lane, Op::i64x2_replace_lane, Op::f32x4_replace_lane,
                             Op::f64x2_replace_lane};
  int width = width_of(dtype);
  if (auto known = builder_.v128_constant(mask)) {
    if (known->is_all(~uint64_t{0})) return raw_part(dtype, at.pointer, offset, count);
    if (known->is_all(0)) return splat_bits(4, 0);
  }
  Ref zero = splat_bits(4, 0);
  Local result = builder_.local(Type::v128);
  size_t level = builder_.level();
  builder_.open_scope();
  builder_.set(result, raw_part(dtype, at.pointer, offset, count));
  FunctionBuilder::Code whole = builder_.close_scope();
  builder_.set_level(level);
  builder_.open_scope();
  builder_.set(result, zero);
  for (int lane = 0; lane < count; ++lane)
    branch(mask_bit(mask, width, lane), [&] {
      Ref element = raw_scalar(dtype, at.pointer, offset + lane * dtype_bytes(dtype));
      Op op = kReplace[static_cast<size_t>(raw_form(dtype))];
      builder_.set(result, builder_.op(op, {builder_.get(result), element},
                                       {.op = op, .lane = static_cast<uint32_t>(lane)}));
    });
  FunctionBuilder::Code single = builder_.close_scope();
  builder_.set_level(level);
  builder_.branch(all_true(mask, width), whole, single);
  return builder_.get(result);
}

Lanes KernelEmitter::contiguous_load(DType dtype, int lanes, const Address& at, const Lanes* mask) {
  if (lanes == 1) return scalar_of_raw(dtype, raw_scalar(dtype, at.pointer, at.offset));
  int width = width_of(dtype), per_part = 16 / width;
  return map(lanes, width, [&](size_t p) {
    int first = static_cast<int>(p) * per_part, count = std::min(per_part, lanes - first);
    int64_t offset = at.offset + first * dtype_bytes(dtype);
    Ref raw = mask ? masked_part(dtype, at, offset, count, mask->parts[p])
                   : raw_part(dtype, at.pointer, offset, count);
    return from_raw(dtype, raw);
  });
}

Lanes KernelEmitter::scattered_load(DType dtype, int lanes, const Index& index, const Address& at,
                                    loop::BufferRef buffer, const Lanes* mask) {
  auto addresses = lane_addresses(dtype, index, at);
  int width = width_of(dtype);
  auto bit = [&](int lane) {
    int per_part = 16 / width;
    return mask_bit(mask->parts[static_cast<size_t>(lane / per_part)], width, lane % per_part);
  };
  Lanes raw = per_lane(raw_form(dtype), lanes, [&](int lane) {
    auto [pointer, offset] = addresses[static_cast<size_t>(lane)];
    if (!mask) return raw_scalar(dtype, pointer, offset);
    Ref there = int_op(Form::i32, BinaryOp::add, pointer, int_of(Form::i32, offset));
    Ref from = builder_.op(Op::select, {there, buffers_[buffer.id], bit(lane)});
    return raw_scalar(dtype, from, 0);
  });
  for (size_t p = 0; p < raw.parts.size(); ++p) {
    if (mask) raw.parts[p] = builder_.op(Op::v128_and, {raw.parts[p], mask->parts[p]});
    raw.parts[p] = from_raw(dtype, raw.parts[p]);
  }
  return raw;
}

}  // namespace lathe::wasm
