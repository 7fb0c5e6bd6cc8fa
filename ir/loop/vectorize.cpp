// Vectorisation of scalar expressions: one recursive rewrite, memoised over the expression DAG.
#include "ir/loop/vectorize.h"

#include <variant>

namespace lathe::loop {
namespace {

class Vectorizer {
 public:
  Vectorizer(const VectorAxis& axis, const Bindings& bound) : axis_(axis), done_(bound) {}

  Expr visit(Expr e) {
    if (auto found = done_.find(e.node()); found != done_.end()) return found->second;
    Expr result = std::visit([&](const auto& kind) { return rebuild(e, kind); }, e->kind);
    done_.emplace(e.node(), result);
    return result;
  }

 private:
  Expr rebuild(Expr e, const IntConst&) { return e; }
  Expr rebuild(Expr e, const FloatConst&) { return e; }
  Expr rebuild(Expr e, const VarRead& read) {
    return read.var == axis_.var ? e->pool->ramp(e, 1, axis_.lanes) : e;
  }
  Expr rebuild(Expr e, const Unary& node) {
    Expr x = visit(node.x);
    return x == node.x ? e : unary(node.op, x);
  }
  Expr rebuild(Expr e, const Binary& node) {
    Expr a = visit(node.a), b = visit(node.b);
    return a == node.a && b == node.b ? e : binary(node.op, a, b);
  }
  Expr rebuild(Expr e, const Fma& node) {
    Expr a = visit(node.a), b = visit(node.b), c = visit(node.c);
    if (a == node.a && b == node.b && c == node.c) return e;
    return fma(lanes(a), lanes(b), lanes(c));
  }
  Expr rebuild(Expr e, const Select& node) {
    Expr c = visit(node.condition), t = visit(node.if_true), f = visit(node.if_false);
    if (c == node.condition && t == node.if_true && f == node.if_false) return e;
    return select(lanes(c), lanes(t), lanes(f));
  }
  Expr rebuild(Expr e, const Cast& node) {
    Expr x = visit(node.x);
    return x == node.x ? e : cast(x, e->dtype);
  }
  Expr rebuild(Expr e, const Bitcast& node) {
    Expr x = visit(node.x);
    return x == node.x ? e : bitcast(x, e->dtype);
  }
  Expr rebuild(Expr e, const Load& node) {
    if (!depends_on(node.index, axis_.var)) return e;
    const Linear form = linear(node.index);
    bool moves_evenly = form.coefficient(axis_.var) == 1;
    for (const auto& [atom, coefficient] : form.terms) {
      if (!std::holds_alternative<VarRead>(atom->kind) && depends_on(atom, axis_.var)) {
        moves_evenly = false;
      }
    }
    Expr index = moves_evenly ? node.index : lanes(visit(node.index));
    return e->pool->load(node.buffer, index, e->dtype, axis_.lanes, axis_.mask);
  }
  Expr rebuild(Expr e, const RegRead&) { return e; }
  Expr rebuild(Expr e, const Splat&) { return e; }
  Expr rebuild(Expr e, const Ramp&) { return e; }
  Expr rebuild(Expr e, const Shuffle&) { return e; }
  Expr rebuild(Expr e, const ReduceLanes&) { return e; }
  Expr rebuild(Expr e, const Reduce&) { return e; }

  Expr lanes(Expr e) { return e->lanes == axis_.lanes ? e : splat(e, axis_.lanes); }

  const VectorAxis& axis_;
  Bindings done_;
};

}  // namespace

Expr vectorize(Expr scalar, const VectorAxis& axis, const Bindings& bound) {
  const Expr result = Vectorizer(axis, bound).visit(scalar);
  return result->lanes == axis.lanes ? result : splat(result, axis.lanes);
}

Expr bind(Expr e, const Bindings& bound) {
  return rewrite(e, [&](Expr sub) {
    auto found = bound.find(sub.node());
    return found == bound.end() ? Expr{} : found->second;
  });
}

}  // namespace lathe::loop
