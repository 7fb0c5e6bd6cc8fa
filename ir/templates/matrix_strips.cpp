// Columns in strips, and rows of them that are eliminated at once: see matrix_steps.h.
#include <utility>

#include "ir/templates/matrix_steps.h"
#include "ir/templates/register_tile.h"

namespace lathe {

using loop::Block;
using loop::Expr;

void MatrixSteps::each_strip(const FunctionRef<void(Expr strip, Expr column)>& fill) {
  const Dim count = Dim::floor_div(stride_, strip_);
  loop(
      integer(0), pool().size(count), 1, [&](Expr strip) { fill(strip, strip * integer(strip_)); },
      count);
}

void MatrixSteps::along_strip(Expr strip, Expr end, const Fill& fill) {
  const Expr first = strip * integer(strip_);
  loop(
      integer(0), loop::min(end - first, integer(strip_)), 1, [&](Expr i) { fill(first + i); },
      strip_);
}

void MatrixSteps::across_strip(Expr strip, const Fill& fill) {
  const int outside = std::exchange(width_, lanes_);
  for (int64_t at = 0; at < strip_; at += lanes_) fill(strip * integer(strip_) + integer(at));
  width_ = outside;
}

void MatrixSteps::eliminate(const Elimination& e) {
  constexpr int64_t kAnyDepth = 8192;  // where it ends says the elimination
  const int64_t vectors = strip_ / lanes_;
  const loop::RegArray rest =
      kernel_.add_regs({"rest", spec_.dtype, lanes_, {tile_rows_, vectors}});
  emit({loop::DeclareRegs{rest}});
  const auto vector_of = [&](Expr row, Expr j) {
    const Expr column = e.strip * integer(strip_) + j * integer(lanes_);
    return pool().load(workspace_, index(row, column), spec_.dtype, lanes_);
  };
  RegisterTileSpec tile;
  tile.rows = tile_rows_;
  tile.vectors = vectors;
  tile.lanes = lanes_;
  tile.dtype = spec_.dtype;
  tile.k_vars = {kernel_.add_loop_var("k", INT64_MAX)};
  tile.k_extents = {Dim(kAnyDepth)};
  tile.k_end = e.depth;
  tile.is_short = true;
  tile.a = [&](Expr i, std::span<const Expr> k) { return e.a(e.row + i, k[0]); };
  tile.b = [&](Expr j, std::span<const Expr> k) { return vector_of(k[0], j); };
  tile.epilogue = [&](Block& block, Expr i, Expr j, Expr sum) {
    block.push_back({loop::SetReg{rest, {i, j}, vector_of(e.row + i, j) - sum}});
  };
  emit_register_tile(kernel_, tile, *block_);
  if (!e.has_triangle) return finish_rows(e, rest);
  when(e.has_triangle, [&] { finish_rows(e, rest); });
  when(loop::logical_not(e.has_triangle), [&] {
    for (int64_t row = 0; row < tile_rows_; ++row) store_row(e, rest, row);
  });
}

// One after another, in registers.
void MatrixSteps::finish_rows(const Elimination& e, loop::RegArray rest) {
  const int64_t vectors = strip_ / lanes_;
  const auto vector = [&](int64_t row, int64_t j) {
    return pool().reg(rest, {integer(row), integer(j)}, spec_.dtype, lanes_);
  };
  for (int64_t row = 0; row < tile_rows_; ++row) {
    const auto set_row = [&](const FunctionRef<Expr(int64_t j)>& value) {
      for (int64_t j = 0; j < vectors; ++j)
        emit({loop::SetReg{rest, {integer(row), integer(j)}, value(j)}});
    };
    const Expr own = e.row + integer(row);
    for (int64_t k = 0; k < row; ++k) {
      const Expr minus = loop::splat(keep("minus", -e.a(own, e.row + integer(k))), lanes_);
      set_row([&](int64_t j) { return loop::fma(minus, vector(k, j), vector(row, j)); });
    }
    store_row(e, rest, row);
    if (!e.factor) continue;
    const Expr factor = loop::splat(keep("factor", e.factor(own)), lanes_);
    set_row([&](int64_t j) { return vector(row, j) * factor; });
    store_row(e, rest, row);
  }
}

void MatrixSteps::store_row(const Elimination& e, loop::RegArray rest, int64_t row) {
  int64_t j = 0;
  across_strip(e.strip, [&](Expr column) {
    put(e.row + integer(row), column,
        pool().reg(rest, {integer(row), integer(j++)}, spec_.dtype, lanes_));
  });
}

}  // namespace lathe
