// Writes at positions from data (index_put, scatter, scatter_reduce), for kinds that make each
// once.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "passes/lowering/kernel_context.h"

namespace lathe {

// The writes of an op, and what of them may meet in one place. An index of `serial` and one of
// `free` name a write.
struct Writes {
  using Index = std::span<const loop::Expr>;

  Shape serial;            // extents of what may meet: the last that meets there stays, or adds
  Shape free;              // of what does not; the last is that of rows, when they are rows
  size_t serial_at = 0;    // as the values lie, the serial dims stand before this free one
  bool has_rows = false;   // the last free dim is that of rows
  bool has_lanes = false;  // whose positions are the same
  bool has_lines = false;  // what may meet is written to a line of the result, and each has some
  std::function<std::vector<loop::Expr>(Index serial, Index free)> place;  // not checked
  std::function<loop::Expr(Index serial, Index free)> value;

  bool is_empty() const;  // surely
};
// Expressions are of the kernel, which has entered the root's region and outlives the result.
Writes writes_of(KernelContext& kernel, const Node& root);

// Where a write goes, and whether that lies inside.
struct WritePlace {
  std::vector<loop::Expr> index;
  loop::Expr beyond;  // negative when a position is outside of its dim; none: it never is
};
// Of a result of that shape: what the place is made of gets names in the block.
WritePlace place_of(KernelContext& kernel, loop::Block& block, const Writes& writes,
                    const Shape& shape, Writes::Index serial, Writes::Index free);
// Appends what is to run where the place lies inside.
void append_inside(KernelContext& kernel, loop::Block& block, const WritePlace& place,
                   loop::Block inside);

}  // namespace lathe
