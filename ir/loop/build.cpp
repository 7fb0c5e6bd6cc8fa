// The builders of expressions, and the folding they promise. What folds gives the very value that
// a target would compute: transcendental functions are polynomials there, so they never fold here.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/loop/pool.h"
#include "ir/loop/scalar.h"

namespace lathe::loop {
namespace {

Expr constant(Pool& pool, Scalar value, DType dtype) {
  return is_float(dtype) ? pool.intern(FloatConst{value.f}, dtype)
                         : pool.intern(IntConst{value.i}, dtype);
}

// The value of a constant, also of one that is the same in every lane.
bool constant_value(Expr e, Scalar& value) {
  if (const auto* same = std::get_if<Splat>(&e->kind)) e = same->x;
  if (const IntConst* c = as_int(e)) {
    value.i = c->value;
    return true;
  }
  if (const FloatConst* c = as_float(e)) {
    value.f = c->value;
    return true;
  }
  return false;
}

const Splat* as_splat(Expr e) { return std::get_if<Splat>(&e->kind); }

// Gives two operands one dtype (the first's) and equal lanes.
void unify(Expr& a, Expr& b) {
  b = cast(b, a->dtype);
  if (a->lanes < b->lanes) a = splat(a, b->lanes);
  if (b->lanes < a->lanes) b = splat(b, a->lanes);
}

bool needs_float(UnaryOp op) { return op >= UnaryOp::sqrt && op <= UnaryOp::erf; }
bool is_rounding(UnaryOp op) { return op >= UnaryOp::floor && op <= UnaryOp::round_even; }
bool folds(UnaryOp op) { return !needs_float(op) || op == UnaryOp::sqrt || op == UnaryOp::rsqrt; }
bool is_bitwise(BinaryOp op) { return op >= BinaryOp::bit_and && op <= BinaryOp::shift_right; }
bool is_commutative(BinaryOp op) {
  return op == BinaryOp::add || op == BinaryOp::mul || op == BinaryOp::min || op == BinaryOp::max ||
         (op >= BinaryOp::bit_and && op <= BinaryOp::bit_xor) || op == BinaryOp::eq ||
         op == BinaryOp::ne;
}

// not (a op b), where that is one comparison on every value; null otherwise. Not for lt and le of
// floats: NaN makes both false.
Expr negated_compare(const Binary& n) {
  if (n.op == BinaryOp::eq) return ne(n.a, n.b);
  if (n.op == BinaryOp::ne) return eq(n.a, n.b);
  if (is_float(n.a->dtype)) return {};
  if (n.op == BinaryOp::lt) return le(n.b, n.a);
  if (n.op == BinaryOp::le) return lt(n.b, n.a);
  return {};
}

// Identities of a binary op whose right operand is the constant `c`; null when none holds.
Expr integer_identity(BinaryOp op, Expr a, int64_t c, Expr b) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::sub:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::shift_left:
    case BinaryOp::shift_right:
      return c == 0 ? a : Expr();
    case BinaryOp::mul:
      return c == 1 ? a : c == 0 ? b : Expr();
    case BinaryOp::bit_and:
      return c == 0 ? b : c == wrap_integer(a->dtype, -1) ? a : Expr();
    case BinaryOp::div:
    case BinaryOp::floor_div:
      return c == 1 ? a : c == 0 ? b : Expr();  // x / 0 is 0
    case BinaryOp::mod:
      return c == 1 ? constant_like(a, 0) : c == 0 ? b : Expr();
    default:
      return {};
  }
}

// Only what keeps every bit of the result: x - 0, x + -0, x * 1, x / 1.
Expr float_identity(BinaryOp op, Expr a, double c) {
  bool is_zero = c == 0;
  if (op == BinaryOp::sub && is_zero && !std::signbit(c)) return a;
  if (op == BinaryOp::add && is_zero && std::signbit(c)) return a;
  if ((op == BinaryOp::mul || op == BinaryOp::div) && c == 1) return a;
  return {};
}

// Integer ops of an expression with itself.
Expr same_operands(BinaryOp op, Expr a) {
  switch (op) {
    case BinaryOp::sub:
    case BinaryOp::bit_xor:
    case BinaryOp::mod:
      return constant_like(a, 0);
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
      return a;
    case BinaryOp::eq:
    case BinaryOp::le:
      return splat(a->pool->boolean(true), a->lanes);
    case BinaryOp::ne:
    case BinaryOp::lt:
      return splat(a->pool->boolean(false), a->lanes);
    default:
      return {};
  }
}

bool is_size(Expr e) { return std::holds_alternative<Size>(e->kind); }

// (x + c1) + c2 and (x * c1) * c2 of integers, which wrap, and of sizes.
Expr reassociate(BinaryOp op, Expr a, Expr b) {
  if (op != BinaryOp::add && op != BinaryOp::mul) return {};
  const auto* inner = std::get_if<Binary>(&a->kind);
  Scalar ignored;
  if (!inner || inner->op != op || (!constant_value(inner->b, ignored) && !is_size(inner->b)))
    return {};
  const Expr merged = binary(op, inner->b, b);
  // Sizes that together are more than a Dim says stay apart; they would be moved about without end.
  if (!constant_value(merged, ignored) && !is_size(merged)) return {};
  return binary(op, inner->a, merged);
}

// Of two sizes, or one and a number: the size that they make; null for what Dims cannot say.
Expr size_arithmetic(BinaryOp op, Expr a, Expr b) {
  const std::optional<Dim> x = as_size(a), y = as_size(b);
  if (!x || !y) return {};
  const auto made = [&](const Dim& dim) {
    return dim.is_too_large() ? Expr() : a->pool->size(dim);
  };
  const auto decided = [&](bool when_less, bool when_equal, bool when_greater) {
    const Dim gap = *x - *y;
    if (!gap.is_const()) return Expr();
    return a->pool->boolean(gap.value() < 0    ? when_less
                            : gap.value() == 0 ? when_equal
                                               : when_greater);
  };
  switch (op) {
    case BinaryOp::add:
      return made(*x + *y);
    case BinaryOp::sub:
      return made(*x - *y);
    case BinaryOp::mul:
      return made(*x * *y);
    case BinaryOp::floor_div:
      return made(Dim::floor_div(*x, *y));
    case BinaryOp::mod:
      return made(Dim::mod(*x, *y));
    case BinaryOp::min:
      return made(Dim::min(*x, *y));
    case BinaryOp::max:
      return made(Dim::max(*x, *y));
    case BinaryOp::eq:
      return decided(false, true, false);
    case BinaryOp::ne:
      return decided(true, false, true);
    case BinaryOp::lt:
      return decided(true, false, false);
    case BinaryOp::le:
      return decided(true, true, false);
    default:
      return {};
  }
}

// i64 vectors that move evenly stay ramps: ramp + x, ramp * c.
Expr ramp_arithmetic(BinaryOp op, Expr a, Expr b) {
  const auto* ramp_a = std::get_if<Ramp>(&a->kind);
  const auto* ramp_b = std::get_if<Ramp>(&b->kind);
  const Splat* same_a = as_splat(a);
  const Splat* same_b = as_splat(b);
  if ((!ramp_a && !same_a) || (!ramp_b && !same_b) || (!ramp_a && !ramp_b)) return {};
  Expr x = ramp_a ? ramp_a->base : same_a->x;
  Expr y = ramp_b ? ramp_b->base : same_b->x;
  Scalar s = int_scalar(ramp_a ? ramp_a->stride : 0);
  Scalar t = int_scalar(ramp_b ? ramp_b->stride : 0);
  Pool& pool = *a->pool;
  if (op == BinaryOp::add || op == BinaryOp::sub)
    return pool.ramp(binary(op, x, y), apply(op, DType::i64, s, t).i, a->lanes);
  if (op != BinaryOp::mul) return {};
  if (const IntConst* c = same_b ? as_int(y) : nullptr)
    return pool.ramp(x * y, apply(op, DType::i64, s, int_scalar(c->value)).i, a->lanes);
  if (const IntConst* c = same_a ? as_int(x) : nullptr)
    return pool.ramp(x * y, apply(op, DType::i64, t, int_scalar(c->value)).i, a->lanes);
  return {};
}

Expr simplify_integer(BinaryOp op, Expr a, Expr b) {
  Scalar c;
  if (constant_value(b, c)) {
    if (Expr known = integer_identity(op, a, c.i, b)) return known;
    if (op == BinaryOp::sub && a->dtype != DType::b8) return a + unary(UnaryOp::neg, b);
    if (Expr merged = reassociate(op, a, b)) return merged;
  }
  if (is_size(b))
    if (Expr merged = reassociate(op, a, b)) return merged;
  if (a == b)
    if (Expr known = same_operands(op, a)) return known;
  return a->lanes > 1 ? ramp_arithmetic(op, a, b) : Expr();
}

// Python's: the result has the divisor's sign. fma keeps the remainder exact but for its last
// rounding.
Expr float_mod(Expr a, Expr b) {
  Expr rest = fma(-unary(UnaryOp::floor, a / b), b, a);
  Expr is_wrong_side =
      logical_and(ne(rest, constant_like(rest, 0)),
                  ne(lt(rest, constant_like(rest, 0)), lt(b, constant_like(b, 0))));
  return select(is_wrong_side, rest + b, rest);
}

}  // namespace

Expr constant_like(Expr like, double value) {
  return splat(like->pool->number(value, like->dtype), like->lanes);
}

Expr unary(UnaryOp op, Expr x) {
  if (needs_float(op) && !is_float(x->dtype)) x = cast(x, DType::f32);
  Pool& pool = *x->pool;
  if (!is_float(x->dtype)) {
    if (is_rounding(op)) return x;
    if (op == UnaryOp::is_nan) return splat(pool.boolean(false), x->lanes);
    if (op == UnaryOp::bit_not && x->dtype == DType::b8) op = UnaryOp::logical_not;
  }
  if (op == UnaryOp::logical_not && x->dtype != DType::b8) return eq(x, constant_like(x, 0));
  bool gives_bool = op == UnaryOp::logical_not || op == UnaryOp::is_nan;
  DType dtype = gives_bool ? DType::b8 : x->dtype;
  if (Scalar value; folds(op) && constant_value(x, value))
    return splat(constant(pool, apply(op, x->dtype, value), dtype), x->lanes);
  if (const Splat* same = as_splat(x)) return splat(unary(op, same->x), x->lanes);
  if (const auto* inner = std::get_if<Unary>(&x->kind)) {
    bool undoes = op == UnaryOp::neg || op == UnaryOp::logical_not || op == UnaryOp::bit_not;
    if (undoes && inner->op == op) return inner->x;
    if (inner->op == op && (op == UnaryOp::abs || is_rounding(op))) return x;
  }
  if (const auto* compare = std::get_if<Binary>(&x->kind); compare && op == UnaryOp::logical_not)
    if (Expr negated = negated_compare(*compare)) return negated;
  return pool.intern(Unary{op, x}, dtype, x->lanes);
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  unify(a, b);
  if (op == BinaryOp::gt) return binary(BinaryOp::lt, b, a);
  if (op == BinaryOp::ge) return binary(BinaryOp::le, b, a);
  if (is_float(a->dtype)) {
    if (op == BinaryOp::floor_div) return unary(UnaryOp::floor, a / b);
    if (op == BinaryOp::mod) return float_mod(a, b);
  }
  Pool& pool = *a->pool;
  DType dtype = is_compare(op) ? DType::b8 : a->dtype;
  Scalar x, y;
  bool is_x_known = constant_value(a, x);
  bool is_y_known = constant_value(b, y);
  bool is_computable = !is_float(a->dtype) || (op != BinaryOp::pow && !is_bitwise(op));
  if (is_x_known && is_y_known && is_computable)
    return splat(constant(pool, apply(op, a->dtype, x, y), dtype), a->lanes);
  if (is_size(a) || is_size(b))
    if (Expr known = size_arithmetic(op, a, b)) return known;
  const Splat* same_a = as_splat(a);
  const Splat* same_b = as_splat(b);
  if (same_a && same_b) return splat(binary(op, same_a->x, same_b->x), a->lanes);
  if (is_size(a) && is_commutative(op) && !is_y_known) std::swap(a, b);
  if (is_x_known && is_commutative(op)) {
    std::swap(a, b);
    std::swap(x, y);
    std::swap(is_x_known, is_y_known);
  }
  if (is_float(a->dtype)) {
    if (Expr known = is_y_known ? float_identity(op, a, y.f) : Expr()) return known;
  } else if (Expr simpler = simplify_integer(op, a, b)) {
    return simpler;
  }
  return pool.intern(Binary{op, a, b}, dtype, a->lanes);
}

Expr operator+(Expr a, Expr b) { return binary(BinaryOp::add, a, b); }
Expr operator-(Expr a, Expr b) { return binary(BinaryOp::sub, a, b); }
Expr operator*(Expr a, Expr b) { return binary(BinaryOp::mul, a, b); }
Expr operator/(Expr a, Expr b) { return binary(BinaryOp::div, a, b); }
Expr operator-(Expr a) { return unary(UnaryOp::neg, a); }
Expr operator+(Expr a, double b) { return a + constant_like(a, b); }
Expr operator-(Expr a, double b) { return a - constant_like(a, b); }
Expr operator*(Expr a, double b) { return a * constant_like(a, b); }
Expr operator/(Expr a, double b) { return a / constant_like(a, b); }
Expr operator-(double a, Expr b) { return constant_like(b, a) - b; }
Expr operator/(double a, Expr b) { return constant_like(b, a) / b; }

Expr floor_div(Expr a, Expr b) { return binary(BinaryOp::floor_div, a, b); }
Expr mod(Expr a, Expr b) { return binary(BinaryOp::mod, a, b); }
Expr min(Expr a, Expr b) { return binary(BinaryOp::min, a, b); }
Expr max(Expr a, Expr b) { return binary(BinaryOp::max, a, b); }
Expr eq(Expr a, Expr b) { return binary(BinaryOp::eq, a, b); }
Expr ne(Expr a, Expr b) { return binary(BinaryOp::ne, a, b); }
Expr lt(Expr a, Expr b) { return binary(BinaryOp::lt, a, b); }
Expr le(Expr a, Expr b) { return binary(BinaryOp::le, a, b); }
Expr logical_and(Expr a, Expr b) {
  return binary(BinaryOp::bit_and, cast(a, DType::b8), cast(b, DType::b8));
}
Expr logical_or(Expr a, Expr b) {
  return binary(BinaryOp::bit_or, cast(a, DType::b8), cast(b, DType::b8));
}
Expr logical_not(Expr a) { return unary(UnaryOp::logical_not, a); }
Expr exp(Expr x) { return unary(UnaryOp::exp, x); }
Expr log(Expr x) { return unary(UnaryOp::log, x); }
Expr sqrt(Expr x) { return unary(UnaryOp::sqrt, x); }
Expr rsqrt(Expr x) { return unary(UnaryOp::rsqrt, x); }
Expr tanh(Expr x) { return unary(UnaryOp::tanh, x); }
Expr erf(Expr x) { return unary(UnaryOp::erf, x); }
Expr abs(Expr x) { return unary(UnaryOp::abs, x); }

Expr fma(Expr a, Expr b, Expr c) {
  unify(a, b);
  unify(a, c);
  unify(a, b);  // c may have brought lanes
  if (!is_float(a->dtype)) return a * b + c;
  Pool& pool = *a->pool;
  Scalar x, y, z;
  if (constant_value(a, x) && constant_value(b, y) && constant_value(c, z))
    return splat(constant(pool, apply_fma(a->dtype, x, y, z), a->dtype), a->lanes);
  if (as_splat(a) && as_splat(b) && as_splat(c))
    return splat(fma(as_splat(a)->x, as_splat(b)->x, as_splat(c)->x), a->lanes);
  return pool.intern(Fma{a, b, c}, a->dtype, a->lanes);
}

Expr pair_dot(Expr a, Expr b, Expr c) {
  const int lanes = std::max({a->lanes, b->lanes, c->lanes});
  return c->pool->intern(PairDot{splat(a, lanes), splat(b, lanes), splat(c, lanes)}, DType::f32,
                         lanes);
}

Expr select(Expr condition, Expr if_true, Expr if_false) {
  unify(if_true, if_false);
  condition = cast(condition, DType::b8);
  int lanes = if_true->lanes > condition->lanes ? if_true->lanes : condition->lanes;
  condition = splat(condition, lanes);
  if_true = splat(if_true, lanes);
  if_false = splat(if_false, lanes);
  if (Scalar known; constant_value(condition, known)) return known.i != 0 ? if_true : if_false;
  if (if_true == if_false) return if_true;
  if (as_splat(condition) && as_splat(if_true) && as_splat(if_false))
    return splat(select(as_splat(condition)->x, as_splat(if_true)->x, as_splat(if_false)->x),
                 lanes);
  return condition->pool->intern(Select{condition, if_true, if_false}, if_true->dtype, lanes);
}

Expr cast(Expr x, DType dtype) {
  if (x->dtype == dtype) return x;
  if (const Splat* same = as_splat(x)) return splat(cast(same->x, dtype), x->lanes);
  if (Scalar value; constant_value(x, value))
    return constant(*x->pool, convert(x->dtype, dtype, value), dtype);
  if (dtype == DType::b8) return ne(x, constant_like(x, 0));
  // Back from a wider float: what a half was is what it is.
  if (const auto* widened = std::get_if<Cast>(&x->kind);
      widened != nullptr && widened->x->dtype == dtype && is_float(dtype) && is_float(x->dtype) &&
      dtype_bytes(dtype) < dtype_bytes(x->dtype))
    return widened->x;
  return x->pool->intern(Cast{x}, dtype, x->lanes);
}

Expr bitcast(Expr x, DType dtype) {
  if (x->dtype == dtype) return x;
  const bool keeps_lanes = dtype_bits(dtype) == dtype_bits(x->dtype);
  if (const Splat* same = as_splat(x); same != nullptr && keeps_lanes)
    return splat(bitcast(same->x, dtype), x->lanes);
  if (const auto* inner = std::get_if<Bitcast>(&x->kind)) return bitcast(inner->x, dtype);
  if (Scalar value; keeps_lanes && constant_value(x, value)) {
    Scalar result = convert_bits(x->dtype, dtype, value);
    // The bits of a NaN would be lost in a float constant.
    bool keeps_bits = !is_float(dtype) || !std::isnan(result.f);
    if (keeps_bits) return constant(*x->pool, result, dtype);
  }
  return x->pool->intern(Bitcast{x}, dtype, x->lanes * dtype_bits(x->dtype) / dtype_bits(dtype));
}

Expr splat(Expr x, int lanes) {
  if (lanes <= 1 || x->lanes > 1) return x;
  return x->pool->intern(Splat{x}, x->dtype, lanes);
}

Expr shuffle(Expr a, Expr b, std::vector<int> lanes) {
  const int count = static_cast<int>(lanes.size());
  if (a == b && as_splat(a)) return splat(as_splat(a)->x, count);
  return a->pool->intern(Shuffle{a, b, std::move(lanes)}, a->dtype, count);
}

Expr reduce_lanes(ReduceOp op, Expr x) {
  if (op == ReduceOp::any || op == ReduceOp::all) x = cast(x, DType::b8);
  bool gives_position = op == ReduceOp::argmax || op == ReduceOp::argmin;
  if (x->lanes == 1) return gives_position ? x->pool->integer(0) : x;
  return x->pool->intern(ReduceLanes{op, x}, gives_position ? DType::i64 : x->dtype);
}

Expr reduce(ReduceOp op, std::vector<Var> vars, std::vector<Expr> extents, Expr body) {
  if (op == ReduceOp::any || op == ReduceOp::all) body = cast(body, DType::b8);
  bool gives_position = op == ReduceOp::argmax || op == ReduceOp::argmin;
  Pool& pool = *body->pool;
  if (vars.empty()) return gives_position ? splat(pool.integer(0), body->lanes) : body;
  DType dtype = gives_position ? DType::i64 : body->dtype;
  int lanes = body->lanes;
  return pool.intern(Reduce{op, std::move(vars), std::move(extents), body}, dtype, lanes);
}

double identity(ReduceOp op, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::prod:
    case ReduceOp::all:
      return 1;
    case ReduceOp::max:
    case ReduceOp::min: {
      if (is_float(dtype)) return op == ReduceOp::max ? -kInfinity : kInfinity;
      int bits = dtype_bits(dtype);
      bool is_unsigned = dtype == DType::u8 || dtype == DType::b8;
      if (op == ReduceOp::max) return is_unsigned ? 0 : -std::ldexp(1.0, bits - 1);
      // For i64 this rounds to 2^63, which Pool::number saturates back.
      return std::ldexp(1.0, is_unsigned ? bits : bits - 1) - 1;
    }
    case ReduceOp::sum:
    case ReduceOp::any:
    case ReduceOp::argmax:
    case ReduceOp::argmin:
      break;
  }
  return 0;
}

Expr combine(ReduceOp op, Expr a, Expr b) {
  switch (op) {
    case ReduceOp::sum:
      return a + b;
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::max:
      return max(a, b);
    case ReduceOp::min:
      return min(a, b);
    case ReduceOp::any:
      return logical_or(a, b);
    case ReduceOp::all:
      return logical_and(a, b);
    case ReduceOp::argmax:
    case ReduceOp::argmin:
      break;
  }
  return a;
}

}  // namespace lathe::loop
