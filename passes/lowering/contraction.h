// What matrix products and convolutions are to the contraction template.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/templates/contraction.h"
#include "passes/lowering/kernel_context.h"

namespace lathe {

// Operands and result as the template's batch, rows (m), columns (n) and reduction (k) index them.
struct ContractionOperands {
  using Index = std::span<const loop::Expr>;
  ContractionSpec spec;
  Value rows;
  BufferId rows_buffer = -1;  // where they are read; -1: where they lie
  std::function<std::vector<loop::Expr>(Index batch, Index m, Index k)> row_index;
  std::function<loop::Expr(KernelContext&, Index batch, Index k, loop::Expr n)> column;
  std::function<std::vector<loop::Expr>(Index batch, Index m, loop::Expr n)> result_index;
  Value bias = {};  // over the result's dim 1: its index has the place
  // Of sums in parts: whether they begin with this one, and end.
  bool is_first = true, is_last = true;
};

// That one convolution may be: each is a kernel to compile.
constexpr size_t kMostProducts = 1024;

// Of a convolution whose members the kernel has entered: products that together give its results.
// Appends the copy of the input that has a border, if they need one. None for one that the template
// does not take.
Result<std::vector<ContractionOperands>> convolution_operands(Lowering& lowering, const Node& node,
                                                              const KernelContext& kernel,
                                                              Phase phase);
// The same of a matmul or a convolution.
Result<std::vector<ContractionOperands>> contraction_operands(Lowering& lowering, const Node& root,
                                                              const KernelContext& kernel,
                                                              Phase phase);

// The products with long sums in parts, of which each adds to those before it: a panel of columns
// then stays in a near cache for all rows. The parts do not depend on the target, so that sums have
// one order where they must.
std::vector<ContractionOperands> in_parts(std::vector<ContractionOperands> products);

}  // namespace lathe
