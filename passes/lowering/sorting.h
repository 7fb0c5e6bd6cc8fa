// What kinds of kernels for argsort share: its lines, and its keys as integers.
#pragma once
#include <span>
#include <vector>

#include "ir/templates/line_sort.h"
#include "passes/lowering/kernel_context.h"

namespace lathe {

// An argsort into a result of this type, which has a dim.
class Sorting {
 public:
  Sorting(const Node& root, const TensorType& result, const Lowering& lowering);

  const Dim& length() const { return length_; }
  const Dim& lines() const { return lines_; }
  bool is_packed() const { return is_packed_; }
  // Whether a place, from the first one on that is wanted, is; null where all are.
  loop::Expr is_wanted(loop::Pool& pool, loop::Expr at) const;
  const Dim& start() const { return start_; }
  // What the templates ask of a kernel, which has or will have the result.
  SortSpec spec(KernelContext& kernel, BufferId out) const;
  loop::Expr element(KernelContext& kernel, loop::Expr line, loop::Expr at) const;
  ResultElement result(KernelContext& kernel, BufferId out, loop::Expr line, loop::Expr at,
                       loop::Expr position) const;

 private:
  std::vector<loop::Expr> index(loop::Pool& pool, loop::Expr line, loop::Expr at) const;
  loop::Expr key(loop::Expr x) const;

  const Node& root_;
  TensorType result_;
  std::vector<size_t> order_;  // of the other dims, as they lie in memory
  size_t dim_;
  Dim lines_ = 1, length_, start_;
  DType dtype_;  // of the elements
  int key_bits_ = 64;
  bool is_packed_ = false;
};

}  // namespace lathe
