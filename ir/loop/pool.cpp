// Interning of expressions, and access to their children.
#include "ir/loop/pool.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/loop/scalar.h"
#include "ir/support/hash.h"

namespace lathe::loop {
namespace {

uint64_t bits(double value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  return word;
}

// The fields of every kind of node, once: hashing and comparison are both made from them. Floats
// go by their bits, so that -0 and NaN are constants like any other.
template <class F>
void visit_fields(const IntConst& n, F&& f) {
  f(n.value);
}
template <class F>
void visit_fields(const FloatConst& n, F&& f) {
  f(bits(n.value));
}
template <class F>
void visit_fields(const VarRead& n, F&& f) {
  f(n.var.id);
}
template <class F>
void visit_fields(const Unary& n, F&& f) {
  f(n.op), f(n.x);
}
template <class F>
void visit_fields(const Binary& n, F&& f) {
  f(n.op), f(n.a), f(n.b);
}
template <class F>
void visit_fields(const Fma& n, F&& f) {
  f(n.a), f(n.b), f(n.c);
}
template <class F>
void visit_fields(const PairDot& n, F&& f) {
  f(n.a), f(n.b), f(n.c);
}
template <class F>
void visit_fields(const Select& n, F&& f) {
  f(n.condition), f(n.if_true), f(n.if_false);
}
template <class F>
void visit_fields(const Cast& n, F&& f) {
  f(n.x);
}
template <class F>
void visit_fields(const Bitcast& n, F&& f) {
  f(n.x);
}
template <class F>
void visit_fields(const Load& n, F&& f) {
  f(n.buffer.id), f(n.index), f(n.mask);
}
template <class F>
void visit_fields(const RegRead& n, F&& f) {
  f(n.array.id), f(n.indices.size());
  for (Expr index : n.indices) f(index);
}
template <class F>
void visit_fields(const Splat& n, F&& f) {
  f(n.x);
}
template <class F>
void visit_fields(const Ramp& n, F&& f) {
  f(n.base), f(n.stride);
}
template <class F>
void visit_fields(const Shuffle& n, F&& f) {
  f(n.a), f(n.b);
  for (int lane : n.lanes) f(lane);
}
template <class F>
void visit_fields(const ReduceLanes& n, F&& f) {
  f(n.op), f(n.x);
}
template <class F>
void visit_fields(const Reduce& n, F&& f) {
  f(n.op), f(n.vars.size());
  for (Var var : n.vars) f(var.id);
  for (Expr extent : n.extents) f(extent);
  f(n.body);
}
template <class F>
void visit_fields(const Size& n, F&& f) {
  f(n.value.hash());
}

// The fields as words; within one pool, pointers stand for expressions.
template <class F>
void visit_words(const ExprNode::Kind& kind, F&& f) {
  std::visit(
      [&](const auto& node) {
        visit_fields(node, [&](const auto& field) {
          if constexpr (std::is_same_v<std::decay_t<decltype(field)>, Expr>) {
            f(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(field.node())));
          } else {
            f(static_cast<uint64_t>(field));
          }
        });
      },
      kind);
}

uint64_t hash_node(const ExprNode::Kind& kind, DType dtype, int lanes) {
  Hasher hasher;
  hasher.add(kind.index() | static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(lanes) << 16);
  visit_words(kind, [&](uint64_t word) { hasher.add(word); });
  return hasher.value();
}

bool same_kind(const ExprNode::Kind& a, const ExprNode::Kind& b) {
  if (a.index() != b.index()) return false;
  if (const auto* size = std::get_if<Size>(&a)) return size->value == std::get<Size>(b).value;
  std::vector<uint64_t> words;
  visit_words(a, [&](uint64_t word) { words.push_back(word); });
  size_t i = 0;
  bool is_same = true;
  visit_words(b, [&](uint64_t word) {
    is_same = is_same && i < words.size() && words[i] == word;
    ++i;
  });
  return is_same && i == words.size();
}

}  // namespace

Expr Pool::intern(ExprNode::Kind kind, DType dtype, int lanes) {
  // One NaN constant: payloads and signs of NaN mean nothing.
  if (auto* c = std::get_if<FloatConst>(&kind); c && std::isnan(c->value))
    c->value = std::numeric_limits<double>::quiet_NaN();
  std::vector<const ExprNode*>& bucket = index_[hash_node(kind, dtype, lanes)];
  for (const ExprNode* node : bucket)
    if (node->dtype == dtype && node->lanes == lanes && same_kind(node->kind, kind))
      return Expr(node);
  auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(ExprNode{std::move(kind), dtype, lanes, this, id});
  bucket.push_back(&nodes_.back());
  return Expr(&nodes_.back());
}

Expr Pool::integer(int64_t value, DType dtype) {
  if (is_float(dtype))
    return intern(FloatConst{convert(DType::i64, dtype, int_scalar(value)).f}, dtype);
  return intern(IntConst{wrap_integer(dtype, value)}, dtype);
}

Expr Pool::number(double value, DType dtype) {
  Scalar converted = convert(DType::f64, dtype, float_scalar(value));
  if (is_float(dtype)) return intern(FloatConst{converted.f}, dtype);
  return intern(IntConst{converted.i}, dtype);
}

Expr Pool::size(const Dim& value) {
  return value.is_const() ? integer(value.value()) : intern(Size{value}, DType::i64);
}

Expr Pool::var(Var v, DType dtype, int lanes) { return intern(VarRead{v}, dtype, lanes); }

Expr Pool::load(BufferRef buffer, Expr index, DType dtype, int lanes, Expr mask) {
  // A uniform vector index reads one element; consecutive ones are a scalar index.
  if (const auto* same = std::get_if<Splat>(&index->kind); same && !mask)
    return splat(load(buffer, same->x, dtype), index->lanes);
  if (index->lanes > 1) lanes = index->lanes;
  if (const auto* ramp = std::get_if<Ramp>(&index->kind); ramp && ramp->stride == 1)
    index = ramp->base;
  if (mask) {
    const auto* same = std::get_if<Splat>(&mask->kind);
    const IntConst* known = as_int(same ? same->x : mask);
    if (known && known->value == 0) return splat(number(0, dtype), lanes);
    mask = known ? Expr() : splat(mask, lanes);
  }
  return intern(Load{buffer, index, mask}, dtype, lanes);
}

Expr Pool::reg(RegArray array, std::vector<Expr> indices, DType dtype, int lanes) {
  return intern(RegRead{array, std::move(indices)}, dtype, lanes);
}

Expr Pool::ramp(Expr base, int64_t stride, int lanes) {
  if (lanes <= 1) return base;
  if (stride == 0) return splat(base, lanes);
  return intern(Ramp{base, stride}, DType::i64, lanes);
}

const IntConst* as_int(Expr e) { return e ? std::get_if<IntConst>(&e->kind) : nullptr; }
const FloatConst* as_float(Expr e) { return e ? std::get_if<FloatConst>(&e->kind) : nullptr; }
std::optional<Dim> as_size(Expr e) {
  if (e->dtype != DType::i64 || e->lanes != 1) return std::nullopt;
  if (const auto* size = std::get_if<Size>(&e->kind)) return size->value;
  if (const IntConst* constant = as_int(e)) return Dim(constant->value);
  return std::nullopt;
}

std::vector<Expr> children(Expr e) {
  std::vector<Expr> result;
  std::visit(
      [&](const auto& node) {
        visit_fields(node, [&](const auto& field) {
          if constexpr (std::is_same_v<std::decay_t<decltype(field)>, Expr>) {
            if (field) result.push_back(field);
          }
        });
      },
      e->kind);
  return result;
}

namespace {

// Rebuilds a node through the builders, so that new constants fold.
struct Rebuild {
  Expr old;
  const std::vector<Expr>& kids;

  Expr operator()(const IntConst&) const { return old; }
  Expr operator()(const FloatConst&) const { return old; }
  Expr operator()(const VarRead&) const { return old; }
  Expr operator()(const Unary& n) const { return unary(n.op, kids[0]); }
  Expr operator()(const Binary& n) const { return binary(n.op, kids[0], kids[1]); }
  Expr operator()(const Fma&) const { return fma(kids[0], kids[1], kids[2]); }
  Expr operator()(const PairDot&) const { return pair_dot(kids[0], kids[1], kids[2]); }
  Expr operator()(const Select&) const { return select(kids[0], kids[1], kids[2]); }
  Expr operator()(const Cast&) const { return cast(kids[0], old->dtype); }
  Expr operator()(const Bitcast&) const { return bitcast(kids[0], old->dtype); }
  Expr operator()(const Load& n) const {
    return old->pool->load(n.buffer, kids[0], old->dtype, old->lanes,
                           kids.size() > 1 ? kids[1] : Expr());
  }
  Expr operator()(const RegRead& n) const {
    return old->pool->reg(n.array, kids, old->dtype, old->lanes);
  }
  Expr operator()(const Splat&) const { return splat(kids[0], old->lanes); }
  Expr operator()(const Ramp& n) const { return old->pool->ramp(kids[0], n.stride, old->lanes); }
  Expr operator()(const Shuffle& n) const { return shuffle(kids[0], kids[1], n.lanes); }
  Expr operator()(const ReduceLanes& n) const { return reduce_lanes(n.op, kids[0]); }
  Expr operator()(const Reduce& n) const {
    return reduce(n.op, n.vars, {kids.begin(), kids.end() - 1}, kids.back());
  }
  Expr operator()(const Size&) const { return old; }
};

}  // namespace

Expr with_children(Expr e, const std::vector<Expr>& kids) {
  return std::visit(Rebuild{e, kids}, e->kind);
}

}  // namespace lathe::loop
