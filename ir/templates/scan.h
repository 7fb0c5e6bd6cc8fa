// Running totals along one dim: every element becomes the total of those up to it.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/pool.h"
#include "ir/target/target.h"
#include "ir/templates/contraction.h"

namespace lathe {

struct ScanSpec {
  std::vector<Dim> lines;  // extents of the other dims, outermost first
  Dim length = 1;          // of a line
  loop::ReduceOp op = loop::ReduceOp::sum;
  DType dtype = DType::f32;  // of the totals
  // Neighbours in the last of `lines`, a number of them, lie side by side: they are lanes.
  bool has_lanes = false;
  // Neighbours of a line do: its totals are lanes, made of each other in as many steps as halves.
  bool has_line_lanes = false;
  std::function<loop::Expr(std::span<const loop::Expr> line, loop::Expr at)> input;
  std::function<ResultElement(std::span<const loop::Expr> line, loop::Expr at, loop::Expr total)>
      result;
};

// Appends the scan's body to `kernel`, which has its buffers. A line is one chain of operations.
void build_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target);

}  // namespace lathe
