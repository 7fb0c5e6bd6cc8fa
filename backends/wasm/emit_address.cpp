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

const loop::LaneIndex& KernelEmitter::split(Expr index) {
  auto [entry, is_new] = splits_.try_emplace(index.node());
  if (is_new) entry->second = loop::split_lanes(index);
  return entry->second;
}

void KernelEmitter::resolve_linear(const loop::Linear& form, Index& into) {
  into.constant += form.constant;
  for (const auto& [atom, coefficient] : form.terms) {
    auto* read = std::get_if<loop::VarRead>(&atom->kind);
    if (read && vars_[read->var.id].linear) {
      const Index& inner = *vars_[read->var.id].linear;
      into.constant += coefficient * inner.constant;
      for (Term term : inner.terms) {
        term.coefficient *= coefficient;
        into.terms.push_back(term);
      }
      continue;
    }
    Placed placed = emit(atom);
    if (std::optional<int64_t> known = builder_.int_constant(placed.ref()))
      into.constant += coefficient * *known;
    else
      into.terms.push_back({placed, coefficient});
  }
}

KernelEmitter::Index KernelEmitter::resolve(const loop::LaneIndex& parts) {
  Index result;
  result.lanes = parts.lanes;
  result.vectors = parts.vectors;
  resolve_linear(parts.base, result);
  // Merge equal values (lets may bring them twice), ordered by scope and then as they come.
  std::vector<Term> merged;
  for (const Term& term : result.terms) {
    auto same = std::find_if(merged.begin(), merged.end(),
                             [&](const Term& m) { return m.placed.ref() == term.placed.ref(); });
    if (same != merged.end()) {
      same->coefficient += term.coefficient;
      continue;
    }
    auto after = std::find_if(merged.begin(), merged.end(),
                              [&](const Term& m) { return m.placed.level > term.placed.level; });
    merged.insert(after, term);
  }
  merged.erase(std::remove_if(merged.begin(), merged.end(),
                              [](const Term& term) { return term.coefficient == 0; }),
               merged.end());
  result.terms = std::move(merged);
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
    int level = placement(std::max(total.level, term.placed.level), false);
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
  if (auto found = pointers_.find(key); found != pointers_.end()) return found->second;
  auto remember = [&](Ref ref, int level) {
    Placed result{{{ref}, 4}, level};
    pointers_[key] = result;
    scopes_[static_cast<size_t>(level)].pointers.push_back(key);
    return result;
  };
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
  int level = placement(std::max(pointer.level, term.placed.level), false);
  return remember(at_level(level, [&] { return scaled(value); }), level);
}

Placed KernelEmitter::moved_pointer(Placed pointer, int64_t bytes) {
  PointerKey key{pointer.ref().id, UINT32_MAX, bytes};
  if (auto found = pointers_.find(key); found != pointers_.end()) return found->second;
  int level = placement(pointer.level, false);
  Ref ref = at_level(level, [&] {
    return int_op(Form::i32, BinaryOp::add, pointer.ref(), int_of(Form::i32, bytes));
  });
  pointers_[key] = {{{ref}, 4}, level};
  scopes_[static_cast<size_t>(level)].pointers.push_back(key);
  return {{{ref}, 4}, level};
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
