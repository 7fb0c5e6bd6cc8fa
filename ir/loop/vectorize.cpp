// Vectorisation of scalar expressions: one recursive rewrite, memoised over the expression DAG.
#include "ir/loop/vectorize.h"

#include <algorithm>
#include <cstdlib>
#include <variant>

namespace lathe::loop {
namespace {

constexpr int64_t kMostStride = 4;  // of lanes that are picked from whole vectors
constexpr int64_t kMostBytes = 64;  // of these: more are several registers

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
  Expr rebuild(Expr e, const Size&) { return e; }
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
  Expr rebuild(Expr e, const PairDot& node) {
    Expr a = visit(node.a), b = visit(node.b), c = visit(node.c);
    if (a == node.a && b == node.b && c == node.c) return e;
    return pair_dot(lanes(a), lanes(b), lanes(c));
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
    const bool is_masked_by_lane = node.mask && depends_on(node.mask, axis_.var);
    if (!depends_on(node.index, axis_.var) && !is_masked_by_lane) {
      // One element for all lanes, at a place that may be a value which is bound.
      const Expr index = visit(node.index), mask = node.mask ? visit(node.mask) : Expr{};
      if (index == node.index && mask == node.mask) return e;
      return e->pool->load(node.buffer, index, e->dtype, index->lanes, mask);
    }
    const Linear form = linear(node.index);
    bool is_linear = true;
    for (const auto& [atom, coefficient] : form.terms) {
      if (!std::holds_alternative<VarRead>(atom->kind) && depends_on(atom, axis_.var)) {
        is_linear = false;
      }
    }
    const bool moves_evenly = is_linear && form.coefficient(axis_.var) == 1;
    if (const int64_t stride = form.coefficient(axis_.var);
        is_linear && axis_.is_register && !node.mask && may_span(e->dtype, stride))
      return spanning(e, node, stride);
    Expr index = moves_evenly ? node.index : lanes(visit(node.index));
    return e->pool->load(node.buffer, index, e->dtype, axis_.lanes, mask_of(node));
  }
  Expr rebuild(Expr e, const RegRead&) { return e; }
  Expr rebuild(Expr e, const Splat&) { return e; }
  Expr rebuild(Expr e, const Ramp&) { return e; }
  Expr rebuild(Expr e, const Shuffle&) { return e; }
  Expr rebuild(Expr e, const ReduceLanes&) { return e; }
  Expr rebuild(Expr e, const Reduce&) { return e; }

  // A lane is read where the load's own mask and the axis's say so.
  Expr mask_of(const Load& node) {
    if (!node.mask) return axis_.mask;
    const Expr own = lanes(visit(node.mask));
    return axis_.mask ? logical_and(own, axis_.mask) : own;
  }

  bool may_span(DType dtype, int64_t stride) const {
    return !axis_.mask && axis_.lanes > 1 && dtype != DType::b8 &&
           axis_.lanes * dtype_bytes(dtype) <= kMostBytes && stride != 0 && stride != 1 &&
           std::abs(stride) <= kMostStride;
  }

  // As many whole vectors as the stride says, the last of which ends at the last lane; each shuffle
  // adds the lanes of one more. What no lane has yet may hold anything.
  Expr spanning(Expr e, const Load& node, int64_t stride) {
    const int64_t count = axis_.lanes, step = std::abs(stride);
    const int64_t span = step * (count - 1) + 1;
    const auto offset = [&](int64_t lane) { return step * (stride > 0 ? lane : count - 1 - lane); };
    const auto start = [&](int64_t part) { return part < step - 1 ? part * count : span - count; };
    const auto part_of = [&](int64_t lane) { return std::min(offset(lane) / count, step - 1); };
    const auto vector = [&](int64_t part) {
      const int64_t at = start(part) + (stride > 0 ? 0 : 1 - span);
      return e->pool->load(node.buffer, node.index + e->pool->integer(at), e->dtype, axis_.lanes);
    };
    Expr result = vector(0);
    for (int64_t part = std::min<int64_t>(step - 1, 1); part < step; ++part) {
      std::vector<int> picked;
      for (int64_t lane = 0; lane < count; ++lane) {
        const int64_t own = part_of(lane), at = offset(lane) - start(own);
        const bool is_first = own == 0 && part <= 1;
        picked.push_back(static_cast<int>(is_first ? at : own == part ? count + at : lane));
      }
      result = shuffle(result, vector(part), std::move(picked));
    }
    return result;
  }

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
