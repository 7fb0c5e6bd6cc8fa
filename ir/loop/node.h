// The loop IR: a closed set of expressions and statements that every backend understands.
//
// Meaning.
// - Integers (loop variables, indices) are i64 and do not overflow; the builder keeps them in
//   bounds. Other integer dtypes wrap. Float arithmetic is IEEE in the expression's dtype, unfused:
//   only `fma` fuses. min and max give NaN when either side is NaN; which of -0 and +0 they pick is
//   the target's choice. Comparisons give bool; `ne` is true on NaN. floor_div and mod are of
//   integers and round to minus infinity (on floats they build from floor, with Python's sign
//   rule); an integer zero divisor gives 0. Shift amounts lie in [0, width). A cast of a float that
//   the integer cannot hold gives an unspecified value, never a trap (8 and 16 bits wrap what an
//   i32 holds).
// - An expression has a dtype and a number of lanes. Lane-wise ops need equal lanes; `splat` makes
//   lanes.
// - A buffer index counts elements. A load or store of n lanes with a scalar index touches elements
//   index .. index+n-1; with a vector index, one element per lane. A mask (bool lanes) disables
//   lanes: a disabled load gives 0, a disabled store writes nothing, and neither touches memory.
// - `reduce` combines its body over its variables, in order, from the operation's identity; argmax
//   and argmin give the row-major position of the first best element (NaN wins). It is what rows
//   lower to; the scheduler turns it into loops over registers, and no emitter sees it.
// - `serial` loops run in order. `unroll` loops mean the same and become straight-line code, so
//   that register indices are constants. Iterations of a `parallel` loop are independent and may
//   run in any order, at once: a kernel's body is exactly one parallel loop, whose range a target
//   divides.
// - Register arrays (`regs`) hold one value per element, live until their block ends, and start
//   undefined. Their indices are constants once unroll loops are expanded. Buffers of space
//   `scratch` belong to one worker at a time; `stack` ones to one iteration of the innermost loop
//   around their kernel.
// - `let` names a value for the rest of its block. `prefetch` is a hint that a target may drop.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/support/loc.h"
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
struct Select {
  Expr condition, if_true, if_false;
};
struct Cast {
  Expr x;
};  // to the node's dtype; floats to ints truncate
struct Bitcast {
  Expr x;
};  // same width
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

struct ExprNode {
  using Kind = std::variant<IntConst, FloatConst, VarRead, Unary, Binary, Fma, Select, Cast,
                            Bitcast, Load, RegRead, Splat, Ramp, Shuffle, ReduceLanes, Reduce>;
  Kind kind;
  DType dtype;
  int lanes;
  Pool* pool;
  uint32_t id = 0;  // order of creation in the pool: deterministic, operands before users
};

// Statements.
struct Stmt;
using Block = std::vector<Stmt>;
enum class LoopKind : uint8_t { serial, unroll, parallel };
struct For {
  Var var;
  Expr lo, hi;
  int64_t step;
  LoopKind kind;
  Block body;
};
struct If {
  Expr condition;
  Block then_body;
  Block else_body;
};  // scalar condition
struct Let {
  Var var;
  Expr value;
};
struct DeclareRegs {
  RegArray array;
};
struct SetReg {
  RegArray array;
  std::vector<Expr> indices;
  Expr value;
};
struct Store {
  BufferRef buffer;
  Expr index;
  Expr value;
  Expr mask;
  bool nontemporal = false;
};
struct Prefetch {
  BufferRef buffer;
  Expr index;
  int locality = 3;
};  // 3 near (L1) .. 1 far
struct Stmt {
  std::variant<For, If, Let, DeclareRegs, SetReg, Store, Prefetch> kind;
};

enum class VarKind : uint8_t { loop, let, dim };
struct VarInfo {
  std::string name;
  VarKind kind = VarKind::loop;
  DType dtype = DType::i64;
  int lanes = 1;
  int64_t min = 0;  // inclusive range of loop variables and dims, for index simplification
  int64_t max = INT64_MAX;
};
enum class Space : uint8_t { global, scratch, stack };
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  int64_t size = 0;  // elements
  Space space = Space::global;
  bool is_written = false;
};
struct RegInfo {
  std::string name;
  DType dtype = DType::f32;
  int lanes = 1;
  std::vector<int64_t> shape;  // empty: one register
};

// One compiled function: body is one parallel loop. Global buffers are its arguments, in order.
struct Kernel {
  std::string name;
  std::vector<Buffer> buffers;
  std::vector<VarInfo> vars;
  std::vector<RegInfo> regs;
  Block body;
  std::shared_ptr<Pool> pool;  // owns the expressions
  std::vector<Loc> origins;    // what it was made from, for explain and errors
  int64_t grain = 1;           // parallel iterations worth one task (about 10 us of work)

  Var add_var(VarInfo info) {
    vars.push_back(std::move(info));
    return {static_cast<uint32_t>(vars.size()) - 1};
  }
  BufferRef add_buffer(Buffer info) {
    buffers.push_back(std::move(info));
    return {static_cast<uint32_t>(buffers.size()) - 1};
  }
  RegArray add_regs(RegInfo info) {
    regs.push_back(std::move(info));
    return {static_cast<uint32_t>(regs.size()) - 1};
  }
};

}  // namespace lathe::loop
