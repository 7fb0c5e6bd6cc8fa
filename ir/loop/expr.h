// Expressions of the loop IR: handles to interned nodes, and what the nodes are. node.h has their
// meaning.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "ir/type/dim.h"
#include "ir/type/dtype.h"

namespace lathe::loop {

class Pool;
struct ExprNode;

// A handle to an interned expression: equal expressions of one pool are the same pointer.
class Expr {
 public:
  Expr() = default;
  explicit Expr(const ExprNode* node) : node_(node) {}
  const ExprNode* node() const { return node_; }
  const ExprNode* operator->() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  friend bool operator==(Expr a, Expr b) { return a.node_ == b.node_; }
  friend bool operator!=(Expr a, Expr b) { return a.node_ != b.node_; }

 private:
  const ExprNode* node_ = nullptr;
};

struct Var {
  uint32_t id = 0;
  friend bool operator==(Var a, Var b) { return a.id == b.id; }
};  // Kernel::vars
struct BufferRef {
  uint32_t id = 0;
  friend bool operator==(BufferRef a, BufferRef b) { return a.id == b.id; }
};  // Kernel::buffers
struct RegArray {
  uint32_t id = 0;
  friend bool operator==(RegArray a, RegArray b) { return a.id == b.id; }
};  // Kernel::regs

// clang-format off: one name per line would double this header.
enum class UnaryOp : uint8_t {
  neg, abs, sqrt, rsqrt, exp, expm1, log, log1p, sin, cos, tanh, erf, floor, ceil, trunc,
  round_even, logical_not, bit_not, is_nan
};
// div of integers truncates; the last six give bools; gt and ge print, but build as lt and le.
enum class BinaryOp : uint8_t {
  add, sub, mul, div, floor_div, mod, min, max, pow, bit_and, bit_or, bit_xor, shift_left,
  shift_right, eq, ne, lt, le, gt, ge
};
// clang-format on
enum class ReduceOp : uint8_t { sum, prod, max, min, any, all, argmax, argmin };

// Expressions.
struct IntConst {
  int64_t value;
};  // integer dtypes and bool
struct FloatConst {
  double value;
};
struct VarRead {
  Var var;
};  // a loop variable, let or dim
struct Unary {
  UnaryOp op;
  Expr x;
};
struct Binary {
  BinaryOp op;
  Expr a, b;
};
struct Fma {
  Expr a, b, c;
};  // a*b + c, rounded once
struct PairDot {
  Expr a, b, c;
};  // c, plus both products of the pairs of bf16 in a's and b's i32 lanes; f32
struct Select {
  Expr condition, if_true, if_false;
};
struct Cast {
  Expr x;
};  // to the node's dtype; floats to ints truncate
struct Bitcast {
  Expr x;
};  // the same bits: as many lanes as they make, the first one lowest
struct Load {
  BufferRef buffer;
  Expr index;
  Expr mask;
};  // mask may be null
struct RegRead {
  RegArray array;
  std::vector<Expr> indices;
};
struct Splat {
  Expr x;
};  // scalar to the node's lanes
struct Ramp {
  Expr base;
  int64_t stride;
};  // base + lane*stride, i64
struct Shuffle {
  Expr a, b;
  std::vector<int> lanes;
};  // lane i is lane lanes[i] of a's followed by b's; not of bools
struct ReduceLanes {
  ReduceOp op;
  Expr x;
};  // all lanes to one: a binary tree, halves added
struct Reduce {
  ReduceOp op;
  std::vector<Var> vars;
  std::vector<Expr> extents;
  Expr body;
};

struct Size {
  Dim value;
};  // a symbolic size, i64; never a number

struct ExprNode {
  using Kind =
      std::variant<IntConst, FloatConst, VarRead, Unary, Binary, Fma, PairDot, Select, Cast,
                   Bitcast, Load, RegRead, Splat, Ramp, Shuffle, ReduceLanes, Reduce, Size>;
  Kind kind;
  DType dtype;
  int lanes;
  Pool* pool;
  uint32_t id = 0;  // order of creation in the pool: deterministic, operands before users
};

}  // namespace lathe::loop
