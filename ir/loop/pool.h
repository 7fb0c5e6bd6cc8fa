// The pool that owns and interns a kernel's expressions, and the functions that build them.
//
// Builders simplify as they go: integer and float constants fold, x+0, x*1, x*0 (integers only),
// select of a constant, splat of a splat; arithmetic of sizes is that of Dims. Float identities
// that change NaN, signed zeros or rounding are not applied.
#pragma once
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/loop/node.h"

namespace lathe::loop {

class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  // The interned node; equal (kind, dtype, lanes) give the same pointer.
  Expr intern(ExprNode::Kind kind, DType dtype, int lanes = 1);

  Expr integer(int64_t value, DType dtype = DType::i64);
  Expr number(double value, DType dtype);  // a constant of any dtype; converted as a C cast does
  Expr size(const Dim& value);             // i64; the constant when it is a number
  Expr boolean(bool value) { return integer(value, DType::b8); }
  Expr var(Var v, DType dtype = DType::i64, int lanes = 1);
  Expr load(BufferRef buffer, Expr index, DType dtype, int lanes = 1, Expr mask = {});
  Expr reg(RegArray array, std::vector<Expr> indices, DType dtype, int lanes = 1);
  Expr ramp(Expr base, int64_t stride, int lanes);

 private:
  std::deque<ExprNode> nodes_;
  std::unordered_map<uint64_t, std::vector<const ExprNode*>> index_;
};

// Builders; operands must be of one pool, one dtype and equal lanes (a scalar is splat to the
// other's lanes).
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
// The number becomes a constant of the expression's dtype and lanes.
Expr operator+(Expr a, double b);
Expr operator-(Expr a, double b);
Expr operator*(Expr a, double b);
Expr operator/(Expr a, double b);
Expr operator-(double a, Expr b);
Expr operator/(double a, Expr b);
Expr constant_like(Expr like, double value);

Expr unary(UnaryOp op, Expr x);
Expr binary(BinaryOp op, Expr a, Expr b);
Expr floor_div(Expr a, Expr b);
Expr mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr lt(Expr a, Expr b);
Expr le(Expr a, Expr b);
Expr logical_and(Expr a, Expr b);  // bools
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);
Expr exp(Expr x);
Expr log(Expr x);
Expr sqrt(Expr x);
Expr rsqrt(Expr x);
Expr tanh(Expr x);
Expr erf(Expr x);
Expr abs(Expr x);
Expr fma(Expr a, Expr b, Expr c);
Expr pair_dot(Expr a, Expr b, Expr c);
Expr select(Expr condition, Expr if_true, Expr if_false);
Expr cast(Expr x, DType dtype);
Expr bitcast(Expr x, DType dtype);
Expr splat(Expr x, int lanes);
// Lanes of a and of b, which are alike; numbers from a's count on are b's.
Expr shuffle(Expr a, Expr b, std::vector<int> lanes);
Expr reduce_lanes(ReduceOp op, Expr x);
Expr reduce(ReduceOp op, std::vector<Var> vars, std::vector<Expr> extents, Expr body);
double identity(ReduceOp op, DType dtype);  // the value a reduction starts from
Expr combine(ReduceOp op, Expr a, Expr b);  // not for argmax and argmin

// The constant's value, when the node is one.
const IntConst* as_int(Expr e);
const FloatConst* as_float(Expr e);
// What a scalar i64 that is a constant or a size stands for.
std::optional<Dim> as_size(Expr e);

// A copy of `e` with every expression for which `map` returns non-null replaced (bottom-up is not
// applied inside replacements). `map` is asked once per distinct node.
template <class F>
Expr rewrite(Expr e, F&& map);
// Calls visit once for every distinct sub-expression, children first.
template <class F>
void for_each(Expr e, F&& visit);
template <class F>
void for_each(std::span<const Expr> roots, F&& visit);
// Direct children, in order, nulls left out.
std::vector<Expr> children(Expr e);
// The same node over other children (in the order of children()).
Expr with_children(Expr e, const std::vector<Expr>& children);

}  // namespace lathe::loop

#include "ir/loop/pool_inl.h"
