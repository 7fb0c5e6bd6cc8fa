// A block of accumulators in registers: acc[i, j] = sum over k of a(i, k) * b(k, j), then an
// epilogue. The inner loop of every contraction template.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"

namespace lathe {

struct RegisterTileSpec {
  int64_t rows = 1;
  int64_t vectors = 1;
  int lanes = 16;
  DType dtype = DType::f32;       // of the accumulators
  std::vector<loop::Var> k_vars;  // reduction loops, outermost first
  // One that has symbols is the only one.
  std::vector<Dim> k_extents;
  // Where the first of them ends, when that is earlier: at a multiple of 4. Null: at its extent.
  // With an extent of symbols it may be anywhere.
  loop::Expr k_end = {};
  // Elements are pairs of bf16 in i32, and reduction indices count pairs.
  bool is_paired = false;
  // The last step of the innermost reduction stands apart: its index is a constant.
  bool has_last_apart = false;
  // Steps share elements of rows, which would stay in registers of their own from copy to copy of
  // the loop's body: there is one.
  bool shares_elements = false;
  // One step at once, in the order of several: less code, for a tile that few rows go through.
  bool is_short = false;
  // The scalar of row `i` and the vector `j`, both at reduction indices k.
  std::function<loop::Expr(loop::Expr i, std::span<const loop::Expr> k)> a;
  std::function<loop::Expr(loop::Expr j, std::span<const loop::Expr> k)> b;
  // Appends what to do with the finished vector (i, j).
  std::function<void(loop::Block&, loop::Expr i, loop::Expr j, loop::Expr sum)> epilogue;
  // True when the epilogue is long: rows then pass through a stack buffer and a rolled loop, which
  // keeps the code small (28 copies of a transcendental function cost 20 ms of compile time).
  bool roll_epilogue = false;
  // Appends hints at the head of each step of the innermost reduction loop; may be empty.
  std::function<void(loop::Block&, std::span<const loop::Expr> k)> prefetch = {};
};

// Appends the tile's statements to `block`.
void emit_register_tile(loop::Kernel& kernel, const RegisterTileSpec& spec, loop::Block& block);

// Steps of the innermost reduction loop that one iteration takes: near 4. What is left of an extent
// that has no such divisor is done behind the loop.
int64_t reduction_unroll(int64_t extent);

}  // namespace lathe
