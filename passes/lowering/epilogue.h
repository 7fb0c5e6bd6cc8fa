// What happens to one element of a contraction on its way to memory.
#pragma once
#include <optional>
#include <vector>

#include "ir/templates/contraction.h"
#include "passes/lowering/kernel_context.h"

namespace lathe {

// The index in a renaming view's result of its operand's element at `index`.
std::vector<loop::Expr> rename_index(KernelContext& kernel, const Node& view,
                                     const std::vector<loop::Expr>& index);

class Epilogue {
 public:
  // `node` is the contraction, or the fused node around it; the kernel has entered its body.
  Epilogue(KernelContext& kernel, const Node& node, BufferId out, TensorType out_type);

  // The contraction's element at `index`, which lies within its shape, is `value`: runs it through
  // the body's other members. Views rename the index, elementwise ops change the value.
  ResultElement apply(const std::vector<loop::Expr>& index, loop::Expr value);

 private:
  // At variables that range over the contraction's shape, so that what the members make of the
  // index is simplified by what only the shape says; templates' indices have wider ranges.
  void build(DType dtype);

  KernelContext& kernel_;
  const Node& node_;
  loop::BufferRef out_;
  TensorType out_type_;
  bool is_built_ = false;
  std::vector<std::optional<loop::Var>> vars_;  // none for dims of extent 1
  loop::Expr value_;                            // stands for the contraction's element
  ResultElement result_;
};

}  // namespace lathe
