// See positions.h.
#include "ir/templates/positions.h"

#include <unordered_map>

#include "ir/loop/linear.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;

constexpr size_t kMostPositions = 4;  // more take longer to ask than to clamp

const loop::Binary* as_binary(Expr e, BinaryOp op) {
  const auto* node = std::get_if<loop::Binary>(&e->kind);
  return node != nullptr && node->op == op ? node : nullptr;
}

bool is_zero(Expr e) {
  const loop::IntConst* constant = loop::as_int(e);
  return constant != nullptr && constant->value == 0;
}

struct Clamp {
  Expr position, last;
};

// min(max(select(x < 0, x + size, x), 0), last), as clamped_position builds it.
std::optional<Clamp> clamp_in(Expr e) {
  const loop::Binary* below = as_binary(e, BinaryOp::min);
  const loop::Binary* above = below == nullptr ? nullptr : as_binary(below->a, BinaryOp::max);
  if (above == nullptr || e->dtype != DType::i64 || !is_zero(above->b)) return std::nullopt;
  const auto* wrap = std::get_if<loop::Select>(&above->a->kind);
  if (wrap == nullptr) return std::nullopt;
  const loop::Binary* negative = as_binary(wrap->condition, BinaryOp::lt);
  if (negative == nullptr || negative->a != wrap->if_false || !is_zero(negative->b))
    return std::nullopt;
  return Clamp{wrap->if_false, below->b};
}

}  // namespace

std::optional<FreePositions> without_clamps(std::span<const Expr> values, loop::Var var) {
  std::unordered_map<const loop::ExprNode*, Expr> clamped;
  Expr is_outside;
  bool has_reductions = false;
  loop::for_each(values, [&](Expr e) {
    has_reductions = has_reductions || std::holds_alternative<loop::Reduce>(e->kind);
    const std::optional<Clamp> clamp = clamp_in(e);
    if (!clamp || !loop::depends_on(clamp->position, var)) return;
    clamped[e.node()] = clamp->position;
    const Expr outside = loop::logical_or(loop::lt(clamp->position, e->pool->integer(0)),
                                          loop::lt(clamp->last, clamp->position));
    is_outside = is_outside ? loop::logical_or(is_outside, outside) : outside;
  });
  if (clamped.empty() || clamped.size() > kMostPositions || has_reductions) return std::nullopt;
  FreePositions free{is_outside, {}};
  // A position may be read at another one.
  const auto freed = [&](auto&& self, Expr e) -> Expr {
    return loop::rewrite(e, [&](Expr part) {
      const auto found = clamped.find(part.node());
      return found == clamped.end() ? Expr() : self(self, found->second);
    });
  };
  for (Expr value : values) free.values.push_back(freed(freed, value));
  return free;
}

}  // namespace lathe
