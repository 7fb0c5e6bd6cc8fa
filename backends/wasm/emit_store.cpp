// Stores: the computed form to bits in a lane each, and from there to memory.
#include <algorithm>

#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"

namespace lathe::wasm {

void KernelEmitter::store_scalar(DType dtype, Ref pointer, int64_t offset, Ref value) {
  Op op = Op::i32_store;
  switch (dtype) {
    case DType::b8:
    case DType::u8:
    case DType::i8:
      op = Op::i32_store8;
      break;
    case DType::i16:
      op = Op::i32_store16;
      break;
    case DType::f16:
    case DType::bf16: {
      op = Op::i32_store16;
      Ref vector = to_raw(dtype, builder_.op(Op::f32x4_splat, {value}));
      value = extract(Form::i32, {{vector}, 4}, 0);
      break;
    }
    case DType::i32:
      break;
    case DType::i64:
      op = Op::i64_store;
      value = as_i64(value);
      break;
    case DType::f32:
      op = Op::f32_store;
      break;
    case DType::f64:
      op = Op::f64_store;
      break;
  }
  builder_.effect(op, {pointer, value}, {op, static_cast<uint32_t>(offset)});
}

// Lane `lane` of a part of stored bits.
void KernelEmitter::store_lane(DType dtype, Ref pointer, int64_t offset, Ref raw, int lane) {
  int64_t bytes = dtype_bytes(dtype);
  Op op = bytes == 8   ? Op::v128_store64_lane
          : bytes == 4 ? Op::v128_store32_lane
          : bytes == 2 ? Op::v128_store16_lane
                       : Op::v128_store8_lane;
  auto place = static_cast<uint32_t>(lane * width_of(dtype) / bytes);
  builder_.effect(op, {pointer, raw}, {op, static_cast<uint32_t>(offset), place});
}

void KernelEmitter::store_part(DType dtype, Ref pointer, int64_t offset, Ref raw, int count) {
  int64_t bytes = dtype_bytes(dtype);
  if (count < 16 / width_of(dtype)) {
    for (int lane = 0; lane < count; ++lane)
      store_lane(dtype, pointer, offset + lane * bytes, raw, lane);
    return;
  }
  auto at = static_cast<uint32_t>(offset);
  if (bytes >= 4) return builder_.effect(Op::v128_store, {pointer, raw}, {Op::v128_store, at});
  // The low bytes of the lanes, side by side.
  uint64_t low = bytes == 2 ? 0x0d0c'0908'0504'0100 : 0x0c080400;
  Instr pattern{.op = Op::i8x16_shuffle, .low = low, .high = 0};
  Ref packed = builder_.op(Op::i8x16_shuffle, {raw, raw}, pattern);
  Op op = bytes == 2 ? Op::v128_store64_lane : Op::v128_store32_lane;
  builder_.effect(op, {pointer, packed}, {op, at});
}

void KernelEmitter::contiguous_store(DType dtype, int lanes, const Address& at, const Lanes& raw,
                                     const Lanes* mask) {
  int width = width_of(dtype), per_part = 16 / width;
  for (size_t p = 0; p < raw.parts.size(); ++p) {
    int first = static_cast<int>(p) * per_part, count = std::min(per_part, lanes - first);
    int64_t offset = at.offset + first * dtype_bytes(dtype);
    Ref part = raw.parts[p];
    auto known = mask ? builder_.v128_constant(mask->parts[p]) : std::nullopt;
    if (known && known->is_all(0)) continue;
    if (!mask || (known && known->is_all(~uint64_t{0}))) {
      store_part(dtype, at.pointer, offset, part, count);
      continue;
    }
    Ref on = mask->parts[p];
    size_t level = builder_.level();
    builder_.open_scope();
    store_part(dtype, at.pointer, offset, part, count);
    FunctionBuilder::Code whole = builder_.close_scope();
    builder_.set_level(level);
    builder_.open_scope();
    for (int lane = 0; lane < count; ++lane)
      branch(mask_bit(on, width, lane), [&] {
        store_lane(dtype, at.pointer, offset + lane * dtype_bytes(dtype), part, lane);
      });
    FunctionBuilder::Code single = builder_.close_scope();
    builder_.set_level(level);
    builder_.branch(all_true(on, width), whole, single);
  }
}

void KernelEmitter::emit_stmt(const loop::Store& store) {
  DType dtype = store.value->dtype;
  Index index = resolve(splits_.of(store.index));
  int lanes = std::max(store.value->lanes, store.index->lanes);
  Lanes x = emit(store.value).lanes;
  Lanes mask = store.mask ? emit(store.mask).lanes : Lanes{};
  if (error_) return;
  Address at = address(store.buffer, index);
  if (lanes == 1) {
    auto write = [&] { store_scalar(dtype, at.pointer, at.offset, x.ref()); };
    std::optional<int64_t> known = store.mask ? builder_.int_constant(mask.ref()) : 1;
    if (!known)
      store_if(mask.ref(), dtype, at, x.ref());
    else if (*known != 0)
      write();
  } else {
    if (store.value->lanes == 1) x = splat(dtype, lanes, x);
    if (dtype == DType::b8) x = mask_width(lanes, x, 4);
    for (Ref& part : x.parts) part = to_raw(dtype, part);
    if (store.mask) mask = mask_width(lanes, mask, x.width);
    const Lanes* on = store.mask ? &mask : nullptr;
    bool is_contiguous =
        index.lanes.empty() || (index.vectors.empty() && loop::lane_stride(index.lanes) == 1);
    if (is_contiguous)
      contiguous_store(dtype, lanes, at, x, on);
    else
      scattered_store(dtype, lane_addresses(dtype, index, at), x, on);
  }
  values_.note_store(store.buffer);
}

void KernelEmitter::store_if(Ref mask, DType dtype, const Address& at, Ref value) {
  if (is_half(dtype)) {  // converting needs constants: outside
    Ref vector = to_raw(dtype, builder_.op(Op::f32x4_splat, {value}));
    branch(mask, [&] { store_lane(dtype, at.pointer, at.offset, vector, 0); });
    return;
  }
  branch(mask, [&] { store_scalar(dtype, at.pointer, at.offset, value); });
}

void KernelEmitter::scattered_store(DType dtype, const LaneAddresses& addresses, const Lanes& raw,
                                    const Lanes* mask) {
  int per_part = 16 / raw.width;
  for (size_t i = 0; i < addresses.size(); ++i) {
    auto [pointer, offset] = addresses[i];
    int lane = static_cast<int>(i);
    auto p = static_cast<size_t>(lane / per_part);
    auto write = [&, from = pointer, by = offset] {
      store_lane(dtype, from, by, raw.parts[p], lane % per_part);
    };
    if (mask)
      branch(mask_bit(mask->parts[p], raw.width, lane % per_part), write);
    else
      write();
  }
}

}  // namespace lathe::wasm
