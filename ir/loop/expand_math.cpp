// expand_math: every function becomes its expansion in vector_math.
//
// sin and cos of large operands take several times the work of others, and are rare: a statement
// that assigns or stores them becomes a choice between two, by whether any lane is large.
#include "ir/loop/expand_math.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/loop/pool.h"
#include "ir/loop/rewrite.h"
#include "ir/loop/vector_math.h"

namespace lathe::loop {
namespace {

// Null for functions that targets have.
Expr expand(UnaryOp op, Expr x, bool has_fma) {
  switch (op) {
    case UnaryOp::exp:
      return vector_math::exp(x);
    case UnaryOp::expm1:
      return vector_math::expm1(x);
    case UnaryOp::log:
      return vector_math::log(x);
    case UnaryOp::log1p:
      return vector_math::log1p(x);
    case UnaryOp::sin:
      return vector_math::sin(x, has_fma);
    case UnaryOp::cos:
      return vector_math::cos(x, has_fma);
    case UnaryOp::tanh:
      return vector_math::tanh(x);
    case UnaryOp::erf:
      return vector_math::erf(x);
    case UnaryOp::rsqrt:
      return 1 / sqrt(x);
    case UnaryOp::neg:
    case UnaryOp::abs:
    case UnaryOp::sqrt:
    case UnaryOp::floor:
    case UnaryOp::ceil:
    case UnaryOp::trunc:
    case UnaryOp::round_even:
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
    case UnaryOp::is_nan:
      break;
  }
  return {};
}

Expr expanded(Expr e, bool has_fma) {
  if (const auto* n = std::get_if<Unary>(&e->kind)) {
    const Expr result = expand(n->op, is_half(e->dtype) ? cast(n->x, DType::f32) : n->x, has_fma);
    return result ? cast(result, e->dtype) : e;
  }
  if (const auto* n = std::get_if<Binary>(&e->kind); n && n->op == BinaryOp::pow) {
    const DType dtype = is_half(e->dtype) ? DType::f32 : e->dtype;
    return cast(vector_math::pow(cast(n->a, dtype), cast(n->b, dtype), has_fma), e->dtype);
  }
  return e;
}

// What erf has become, and of what: whoever adds one to it needs less of it.
using Erfs = std::unordered_map<const ExprNode*, Expr>;

// 1 + erf, given its operands as they have become; null for anything else.
Expr one_plus_erf(Expr e, const Erfs& erfs) {
  const auto* sum = std::get_if<Binary>(&e->kind);
  if (!sum || sum->op != BinaryOp::add) return {};
  for (const auto& [erf, one] : {std::pair(sum->a, sum->b), std::pair(sum->b, sum->a)}) {
    const auto found = erfs.find(erf.node());
    if (found != erfs.end() && one == constant_like(one, 1))
      return vector_math::one_plus_erf(found->second);
  }
  return {};
}

// What vector_math::is_large gave, by node; not where it is known.
using Guards = std::unordered_set<const ExprNode*>;

void note_guard(Expr e, bool has_fma, Guards& guards) {
  const auto* n = std::get_if<Unary>(&e->kind);
  if (!n || (n->op != UnaryOp::sin && n->op != UnaryOp::cos) || e->dtype == DType::f64) return;
  const Expr x = is_half(e->dtype) ? cast(n->x, DType::f32) : n->x;
  const Expr guard = vector_math::is_large(x, has_fma);
  if (std::holds_alternative<Binary>(guard->kind)) guards.insert(guard.node());
}

// Whether any lane of any guard in the expression is set; null when there is none.
Expr any_large(Expr value, const Guards& guards) {
  Expr any;
  for_each(value, [&](Expr e) {
    if (guards.count(e.node()) == 0) return;
    const Expr lane = reduce_lanes(ReduceOp::any, e);
    any = any ? logical_or(any, lane) : lane;
  });
  return any;
}

Expr without_large(Expr value, const Guards& guards) {
  return rewrite(value, [&](Expr e) {
    return guards.count(e.node()) ? splat(e->pool->boolean(false), e->lanes) : Expr();
  });
}

void choose_statements(Block& block, const Guards& guards) {
  for (Stmt& stmt : block) {
    if (auto* loop = std::get_if<For>(&stmt.kind)) {
      choose_statements(loop->body, guards);
    } else if (auto* branch = std::get_if<If>(&stmt.kind)) {
      choose_statements(branch->then_body, guards);
      choose_statements(branch->else_body, guards);
    }
    Stmt small = stmt;
    Expr* value = nullptr;
    if (auto* set = std::get_if<SetReg>(&small.kind)) value = &set->value;
    if (auto* store = std::get_if<Store>(&small.kind)) value = &store->value;
    const Expr any = value ? any_large(*value, guards) : Expr();
    if (!any) continue;
    *value = without_large(*value, guards);
    stmt = Stmt{If{any, {stmt}, {small}}};
  }
}

}  // namespace

void expand_math(Kernel& kernel, bool has_fma) {
  Guards guards;
  Erfs erfs;
  rewrite(kernel, [&](Expr e) {
    note_guard(e, has_fma, guards);
    if (const Expr sum = one_plus_erf(e, erfs)) return sum;
    const Expr result = expanded(e, has_fma);
    const auto* function = std::get_if<Unary>(&e->kind);
    if (function && function->op == UnaryOp::erf && e->dtype == DType::f32)
      erfs.emplace(result.node(), function->x);
    return result;
  });
  if (!guards.empty()) choose_statements(kernel.body, guards);
}

}  // namespace lathe::loop
