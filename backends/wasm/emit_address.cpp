// Addresses. An index becomes constant + sum of coefficient * value. The constant goes into the
// instruction's offset; the terms are added to the buffer's address one by one, outermost scope
// first, and every prefix is shared: unrolled accesses of one loop body differ by offsets only. A
// term that is the counter of a serial loop makes a pointer that moves with the loop instead of a
// product in it. Offsets are added without wrapping, so an address must not be below zero without
// them.
#include <algorithm>

#include "backends/wasm/emit_lanes.h"
#include "backends/wasm/kernel_emitter.h"
#include "ir/loop/scalar.h"

namespace lathe::wasm {
namespace {

// a * b, or the limit in its direction.
int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}
int64_t saturating_add(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

}  // namespace

KernelEmitter::Index KernelEmitter::resolve(const loop::LaneIndex& parts) {
  Index result;
  result.lanes = parts.lanes;
  result.vectors = parts.vectors;
  auto let_of = [&](loop::Var var) -> const placement::Index<Placed>* {
    const std::optional<Index>& linear = vars_[var.id].linear;
    return linear ? &*linear : nullptr;
  };
  auto atom_of = [&](Expr atom, const loop::VarRead*) -> std::variant<int64_t, Term> {
    Placed placed = emit(atom);
    if (std::optional<int64_t> known = builder_.int_constant(placed.ref())) return *known;
    return Term{placed, 1};
  };
  result.add(parts.base, let_of, atom_of);
  result.merge_terms([](const Placed& a, const Placed& b) { return a.ref() == b.ref(); });
  loop::Interval range = ranges_.of(parts.base);
  result.range = {saturating_add(range.min, -result.constant),
                  saturating_add(range.max, -result.constant)};
  if (result.terms.empty()) result.range = {0, 0};
  return result;
}

Placed KernelEmitter::sum(const Index& index, bool is_narrow) {
  Form form = is_narrow ? Form::i32 : Form::i64;
  Placed total{{{int_of(form, index.constant)}, 8}, 0};
  for (const Term& term : index.terms) {
    int level = values_.placement(std::max(total.level, term.placed.level), false);
    Ref value = at_level(level, [&] {
      Ref x = is_narrow ? as_i32(term.placed.ref()) : as_i64(term.placed.ref());
      Ref product = int_op(form, BinaryOp::mul, x, int_of(form, term.coefficient));
      return int_op(form, BinaryOp::add, product, total.ref());
    });
    total = {{{value}, 8}, level};
  }
  return total;
}

Placed KernelEmitter::step_pointer(Placed pointer, const Term& term, int64_t bytes) {
  Ref value = term.placed.ref();
  PointerKey key{pointer.ref().id, value.id, bytes};
  if (const Placed* known = values_.pointer(key)) return *known;
  auto remember = [&](Ref ref, int level) { return values_.remember(key, {{{ref}, 4}, level}); };
  auto scaled = [&](Ref x) {
    return int_op(Form::i32, BinaryOp::add, pointer.ref(),
                  int_op(Form::i32, BinaryOp::mul, as_i32(x), int_of(Form::i32, bytes)));
  };
  auto at = static_cast<size_t>(term.placed.level);
  if (scopes_[at].counter == value && scopes_[at].counter && pointer.level < term.placed.level) {
    Local moving;
    at_level(term.placed.level - 1, [&] {
      moving = builder_.local(Type::i32);
      builder_.set(moving, scaled(scopes_[at].lo));
      return 0;
    });
    scopes_[at].bumps.push_back({moving, loop::wrapping_mul(bytes, scopes_[at].step)});
    return remember(builder_.steady(moving), term.placed.level);
  }
  int level = values_.placement(std::max(pointer.level, term.placed.level), false);
  return remember(at_level(level, [&] { return scaled(value); }), level);
}

Placed KernelEmitter::moved_pointer(Placed pointer, int64_t bytes) {
  PointerKey key{pointer.ref().id, UINT32_MAX, bytes};
  if (const Placed* known = values_.pointer(key)) return *known;
  int level = values_.placement(pointer.level, false);
  Ref ref = at_level(level, [&] {
    return int_op(Form::i32, BinaryOp::add, pointer.ref(), int_of(Form::i32, bytes));
  });
  return values_.remember(key, {{{ref}, 4}, level});
}

KernelEmitter::Address KernelEmitter::address(loop::BufferRef buffer, const Index& index) {
  int64_t bytes = dtype_bytes(kernel_.buffers[buffer.id].dtype);
  Placed pointer{{{buffers_[buffer.id]}, 4}, 0};
  for (const Term& term : index.terms)
    pointer = step_pointer(pointer, term, loop::wrapping_mul(bytes, term.coefficient));
  // What buffers lie above zero is what an address may be below its buffer.
  int64_t offset = saturating_mul(index.constant, bytes);
  int64_t least = saturating_mul(index.range.min, bytes);
  constexpr int64_t kMostOffset = int64_t{1} << 31;
  if (least >= -kLeastAddress && offset >= 0 && offset < kMostOffset)
    return {pointer.ref(), static_cast<uint32_t>(offset), pointer.level};
  // Anchors at multiples serve neighbouring offsets.
  constexpr int64_t kSpan = 4096;
  int64_t anchor = offset - ((offset % kSpan) + kSpan) % kSpan;
  if (saturating_add(least, anchor) < -kLeastAddress) anchor = offset;
  pointer = moved_pointer(pointer, anchor);
  return {pointer.ref(), static_cast<uint32_t>(offset - anchor), pointer.level};
}

// The address of each lane, as a pointer and an offset.
KernelEmitter::LaneAddresses KernelEmitter::lane_addresses(DType dtype, const Index& index,
                                                           const Address& at) {
  int64_t bytes = dtype_bytes(dtype);
  LaneAddresses result;
  for (size_t lane = 0; lane < index.lanes.size(); ++lane) {
    Ref pointer = at.pointer;
    for (const auto& [vector, factor] : index.vectors) {
      Ref element = as_i32(extract(Form::i64, emit(vector).lanes, static_cast<int>(lane)));
      Ref moved = int_op(Form::i32, BinaryOp::mul, element,
                         int_of(Form::i32, loop::wrapping_mul(factor, bytes)));
      pointer = int_op(Form::i32, BinaryOp::add, pointer, moved);
    }
    // Lanes may lie below their neighbours, and vectors add anything: nothing is left to offsets.
    int64_t offset = loop::wrapping_add(at.offset, loop::wrapping_mul(index.lanes[lane], bytes));
    bool is_plain = index.vectors.empty() && index.lanes[lane] >= 0 && offset < (int64_t{1} << 31);
    if (!is_plain) pointer = int_op(Form::i32, BinaryOp::add, pointer, int_of(Form::i32, offset));
    result.emplace_back(pointer, is_plain ? offset : 0);
  }
  return result;
}

}  // namespace lathe::wasm
