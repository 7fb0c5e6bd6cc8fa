// Splitting of index expressions; see address.h.
#include "ir/loop/address.h"

#include "ir/loop/pool.h"
#include "ir/loop/ranges.h"
#include "ir/loop/scalar.h"

namespace lathe::loop {
namespace {

// The constant that a scalar or all lanes of a splat are.
const IntConst* uniform_int(Expr e) {
  if (const IntConst* constant = as_int(e)) return constant;
  const auto* splat = std::get_if<Splat>(&e->kind);
  return splat ? as_int(splat->x) : nullptr;
}

void add_scalar(Expr index, int64_t factor, LaneIndex& into) {
  accumulate(into.base, linear(index), factor);
}

}  // namespace

void split_lanes(Expr index, int64_t factor, LaneIndex& into) {
  if (index->lanes == 1) return add_scalar(index, factor, into);
  if (const IntConst* constant = as_int(index)) {
    into.base.constant = wrapping_add(into.base.constant, wrapping_mul(factor, constant->value));
    return;
  }
  if (const auto* splat = std::get_if<Splat>(&index->kind))
    return add_scalar(splat->x, factor, into);
  if (const auto* ramp = std::get_if<Ramp>(&index->kind)) {
    add_scalar(ramp->base, factor, into);
    const int64_t step = wrapping_mul(factor, ramp->stride);
    for (size_t lane = 0; lane < into.lanes.size(); ++lane)
      into.lanes[lane] =
          wrapping_add(into.lanes[lane], wrapping_mul(step, static_cast<int64_t>(lane)));
    return;
  }
  if (const auto* node = std::get_if<Binary>(&index->kind)) {
    if (node->op == BinaryOp::add || node->op == BinaryOp::sub) {
      split_lanes(node->a, factor, into);
      return split_lanes(node->b, node->op == BinaryOp::add ? factor : wrapping_sub(0, factor),
                         into);
    }
    for (auto [x, by] : {std::pair{node->a, node->b}, {node->b, node->a}})
      if (const IntConst* constant = uniform_int(by); constant && node->op == BinaryOp::mul)
        return split_lanes(x, wrapping_mul(factor, constant->value), into);
  }
  into.vectors.emplace_back(index, factor);
}

LaneIndex split_lanes(Expr index) {
  LaneIndex result;
  if (index->lanes > 1) result.lanes.assign(static_cast<size_t>(index->lanes), 0);
  split_lanes(index, 1, result);
  return result;
}

std::optional<int64_t> lane_stride(const std::vector<int64_t>& lanes) {
  int64_t stride = lanes.size() > 1 ? wrapping_sub(lanes[1], lanes[0]) : 1;
  for (size_t i = 0; i < lanes.size(); ++i)
    if (lanes[i] != wrapping_mul(stride, static_cast<int64_t>(i))) return std::nullopt;
  return stride;
}

}  // namespace lathe::loop
