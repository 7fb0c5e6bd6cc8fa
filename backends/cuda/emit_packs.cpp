// Vectors whose lanes lie apart, but those of a thread side by side: rows of a tile, many of which
// make one vector. Their indices and masks become those of accesses that a thread makes at once.
#include <algorithm>

#include "backends/cuda/kernel_emitter.h"
#include "ir/loop/rewrite.h"

namespace lathe::cuda {
namespace {

// The number that all lanes are.
const loop::IntConst* same_int(Expr vector) {
  const auto* splat = std::get_if<loop::Splat>(&vector->kind);
  return loop::as_int(splat ? splat->x : vector);
}

}  // namespace

// The vector's value in the first of a thread's lanes.
Expr KernelEmitter::at_first_lane(Expr vector) {
  return loop::rewrite(vector, [&](Expr e) {
    if (const auto* splat = std::get_if<loop::Splat>(&e->kind)) return splat->x;
    const auto* ramp = std::get_if<loop::Ramp>(&e->kind);
    if (!ramp) return Expr();
    if (shape_.threads == 1) return ramp->base;
    return ramp->base + e->pool->var(first_) * e->pool->integer(ramp->stride);
  });
}

// How much an integer grows from each lane of a thread to the next; none when that is not known.
std::optional<int64_t> KernelEmitter::step_of(Expr e) {
  if (e->lanes == 1 || std::holds_alternative<loop::Splat>(e->kind)) return 0;
  if (const auto* ramp = std::get_if<loop::Ramp>(&e->kind)) return ramp->stride;
  const auto* n = std::get_if<loop::Binary>(&e->kind);
  if (!n || e->dtype != DType::i64) return std::nullopt;
  const std::optional<int64_t> a = step_of(n->a), b = step_of(n->b);
  if (!a || !b) return std::nullopt;
  if (n->op == BinaryOp::add) return *a + *b;
  if (n->op == BinaryOp::sub) return *a - *b;
  if (*a == 0 && *b == 0) return 0;
  const loop::IntConst* by = same_int(n->b);
  if (!by) return std::nullopt;
  if (n->op == BinaryOp::mul) return *a * by->value;
  const bool is_division = n->op == BinaryOp::floor_div || n->op == BinaryOp::mod;
  if (!is_division || *a != 1 || by->value % shape_.lanes_a_thread != 0 || !starts_pack(n->a))
    return std::nullopt;
  return n->op == BinaryOp::mod ? 1 : 0;
}

// Whether the first of a thread's lanes is a multiple of how many it has.
bool KernelEmitter::starts_pack(Expr vector) {
  return alignment(at_first_lane(vector)) >= shape_.lanes_a_thread;
}

// The scalar index whose contiguous access touches the same elements; null when there is none.
Expr KernelEmitter::packed_index(Expr index) {
  if (index->lanes == 1 || step_of(index) != 1 || !starts_pack(index)) return {};
  const Expr first = at_first_lane(index);
  return shape_.threads == 1 ? first : first - index->pool->var(first_);
}

// What says for all lanes of a thread at once that they are on; null when they may differ.
Expr KernelEmitter::packed_mask(Expr mask) {
  if (const auto* all = std::get_if<loop::Splat>(&mask->kind)) return all->x;
  const auto* n = std::get_if<loop::Binary>(&mask->kind);
  if (!n) return {};
  if (n->op == BinaryOp::bit_and) {
    const Expr a = packed_mask(n->a), b = a ? packed_mask(n->b) : a;
    return b ? loop::logical_and(a, b) : b;
  }
  if (n->op != BinaryOp::lt || n->a->dtype != DType::i64) return {};
  const std::optional<int64_t> a = step_of(n->a), b = step_of(n->b);
  const bool is_same = a == 0 && b == 0;
  if (!is_same && !(a == 1 && b == 0 && starts_pack(n->a) && starts_pack(n->b))) return {};
  return loop::lt(at_first_lane(n->a), at_first_lane(n->b));
}

// An access with both, when a thread can make it at once and could not before.
bool KernelEmitter::pack_access(Expr& index, Expr& mask, int lanes) {
  if (lanes == 1) return false;
  const Expr place = index->lanes == 1 ? index : packed_index(index);
  if (!place) return false;
  const auto* less = mask ? std::get_if<loop::Binary>(&mask->kind) : nullptr;
  const bool is_tail = less && less->op == BinaryOp::lt;
  Expr on = mask;
  if (mask && !(is_tail && place == index)) {
    const Expr all = packed_mask(mask);
    if (!all) return false;
    on = loop::splat(all, lanes);
  }
  if (place == index && on == mask) return false;
  index = place;
  mask = on;
  return true;
}

void KernelEmitter::pack_stores(loop::Block& block) {
  for (loop::Stmt& stmt : block) {
    if (auto* loop = std::get_if<loop::For>(&stmt.kind)) pack_stores(loop->body);
    if (auto* branch = std::get_if<loop::If>(&stmt.kind)) {
      pack_stores(branch->then_body);
      pack_stores(branch->else_body);
    }
    if (auto* store = std::get_if<loop::Store>(&stmt.kind))
      pack_access(store->index, store->mask, store->value->lanes);
  }
}

void KernelEmitter::name_first_lane() {
  if (shape_.lanes == 1) return;
  first_ = kernel_.add_var(
      {"first", loop::VarKind::loop, DType::i64, 1, 0, shape_.lanes - shape_.lanes_a_thread});
  vars_.push_back("first");
  var_alignment_.push_back(shape_.lanes_a_thread);
}

// Only where lanes of a thread are neighbours, which what is packed must not change.
void KernelEmitter::pack_rows() {
  if (!is_blocked_ || shape_.lanes_a_thread == 1 || shape_.threads == 1) return;
  const loop::Kernel plain = kernel_;
  loop::rewrite(kernel_, [&](Expr e) {
    const auto* load = std::get_if<loop::Load>(&e->kind);
    if (!load) return e;
    Expr index = load->index, mask = load->mask;
    return pack_access(index, mask, e->lanes)
               ? e->pool->load(load->buffer, index, e->dtype, e->lanes, mask)
               : e;
  });
  pack_stores(kernel_.body);
  has_contiguous_ = false;
  scan(std::get<loop::For>(kernel_.body.front().kind).body);
  if (is_blocked_) return;
  kernel_ = plain;
  is_blocked_ = true;
  has_contiguous_ = false;
  scan(std::get<loop::For>(kernel_.body.front().kind).body);
}

}  // namespace lathe::cuda
