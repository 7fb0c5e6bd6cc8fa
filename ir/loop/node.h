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
// - `pair_dot` adds to each f32 lane the products of two pairs of bf16, each pair in an i32 lane,
//   its first element in the lower half. Products are exact, and added in f32 in an order that a
//   target chooses; a subnormal element or sum may count as 0. Which machines have it is target
//   data, and `strict` has none.
// - An expression has a dtype and a number of lanes. Lane-wise ops need equal lanes; `splat` makes
//   lanes.
// - A buffer index counts elements. A load or store of n lanes with a scalar index touches elements
//   index .. index+n-1; with a vector index, one element per lane. A mask (bool lanes) disables
//   lanes: a disabled load gives 0, a disabled store writes nothing, and neither touches memory.
// - `reduce` combines its body over its variables, in order, from the operation's identity; argmax
//   and argmin give the row-major position of the first best element (NaN wins). It is what rows
//   lower to; the scheduler turns it into loops over registers, and no emitter sees it.
// - An `atomic` store combines its value (sum, prod, max or min; a scalar of 32 or 64 bits) with
//   the element that is there, and no other store comes between: iterations that run at once may
//   combine into one element, in an order that a target chooses. Nothing else of the kernel reads
//   or writes that element. Only targets whose threads come in groups have it.
// - `serial` loops run in order. `unroll` loops mean the same and become straight-line code, so
//   that register indices are constants. Iterations of a `parallel` loop are independent and may
//   run in any order, at once: a kernel's body is exactly one parallel loop, whose range a target
//   divides. Where several store to one element that none reads, it has the value of one of them.
// - Register arrays (`regs`) hold one value per element, live until their block ends, and start
//   undefined. Their indices are constants once unroll loops are expanded. Buffers of space
//   `scratch` belong to one worker at a time; `stack` ones to one iteration of the innermost loop
//   around their kernel.
// - Symbolic sizes are `size` expressions of the symbols in the kernel's table, which are what rows
//   and templates write. lift_sizes makes each of them a variable of kind `dim`, which the caller
//   gives a value at every launch: a scheduled kernel has those alone, and no arithmetic of sizes.
// - `let` names a value for the rest of its block. `prefetch` is a hint that a target may drop.
//
// Threads.
// - The parallel loop's body may be lets and then one `thread` loop, from 0 to a constant: each
//   iteration of the parallel loop is then a group, and those of the thread loop are its threads,
//   which run at once. Each has registers and lets of its own. Buffers of space `shared` belong to
//   a group and start undefined; scratch and stack ones there are none of.
// - `barrier` waits for all threads of the group; behind it each sees what all stored before. No
//   thread may read or write what another one writes without a barrier between the two. All threads
//   reach a barrier or none: what decides is uniform, that is made of constants, dims, the group's
//   variables and variables of uniform loops and lets.
// - Register arrays may hold matrix tiles (`tiles`), which belong to one thread: `left` ones of m x
//   k and `right` ones of k x n elements, and sums of m x n. load_tile and store_tile move all of
//   one, element (r, c) at index + r*stride + c, or at index + r + c*stride when transposed; a
//   scalar set to a tile goes to every element. `mma` adds the product of left and right to the
//   sum: products of elements are exact, and added in f32 in an order that a target chooses. Which
//   shapes and dtypes there are is target data; nothing else reads or writes tiles.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/loop/expr.h"
#include "ir/support/loc.h"
#include "ir/type/dim.h"
#include "ir/type/dtype.h"

namespace lathe::loop {

// Statements.
struct Stmt;
using Block = std::vector<Stmt>;
enum class LoopKind : uint8_t { serial, unroll, parallel, thread };
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
  std::optional<ReduceOp> atomic = {};  // combined with what is there
};
struct Prefetch {
  BufferRef buffer;
  Expr index;
  int locality = 3;
};  // 3 near (L1) .. 1 far
struct Barrier {};
struct TileRef {
  RegArray array;
  std::vector<Expr> indices;
};
struct LoadTile {
  TileRef tile;
  BufferRef buffer;
  Expr index;
  int64_t stride;
  bool is_transposed = false;
};
struct StoreTile {
  BufferRef buffer;
  Expr index;
  int64_t stride;
  TileRef tile;  // a sum
};
struct Mma {
  TileRef sum, left, right;
};
struct Stmt {
  std::variant<For, If, Let, DeclareRegs, SetReg, Store, Prefetch, Barrier, LoadTile, StoreTile,
               Mma>
      kind;
};

enum class VarKind : uint8_t { loop, let, dim };
struct VarInfo {
  std::string name;
  VarKind kind = VarKind::loop;
  DType dtype = DType::i64;
  int lanes = 1;
  int64_t min = 0;  // inclusive range of loop variables and dims, for index simplification
  int64_t max = INT64_MAX;
  Dim extent = 0;        // when it is symbolic, what has values from 0 on is also below it
  int64_t multiple = 1;  // divides every value of a dim; a power of two
};
enum class Space : uint8_t { global, scratch, stack, shared };
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  Dim size = 0;  // elements
  Space space = Space::global;
  bool is_written = false;
};
enum class TileRole : uint8_t { none, left, right, sum };
struct TileShape {
  int m = 1, n = 1, k = 1;
  friend bool operator==(const TileShape&, const TileShape&) = default;
};
struct RegInfo {
  std::string name;
  DType dtype = DType::f32;
  int lanes = 1;
  std::vector<int64_t> shape;  // empty: one register
  TileRole role = TileRole::none;
  TileShape tile = {};  // of the product that it is an operand of
  int rows() const { return role == TileRole::right ? tile.k : tile.m; }
  int columns() const { return role == TileRole::left ? tile.k : tile.n; }
  // Elements behind one index: those of a tile, or lanes.
  int width() const { return role == TileRole::none ? lanes : rows() * columns(); }
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
  // Ranges of the symbols that its sizes are made of: none once lift_sizes has been here.
  std::map<std::string, DimRange> symbols = {};

  Var add_var(VarInfo info) {
    vars.push_back(std::move(info));
    return {static_cast<uint32_t>(vars.size()) - 1};
  }
  // In [0, extent); 0 alone where that has nothing.
  Var add_loop_var(std::string var_name, const Dim& extent) {
    const Var var = add_var({std::move(var_name)});
    set_extent(var, extent);
    return var;
  }
  void set_extent(Var var, const Dim& extent) {
    const int64_t most = extent.bounds(symbols).max.value_or(INT64_MAX);
    vars[var.id].max = most > 0 ? most - 1 : 0;
    vars[var.id].extent = extent.is_const() ? Dim(0) : extent;
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
