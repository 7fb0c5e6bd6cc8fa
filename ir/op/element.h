// What an op row's `lower` slot is given: access to operand elements and the means to reduce over
// them.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/loop/pool.h"

namespace lathe {

class ElementContext {
 public:
  virtual ~ElementContext() = default;

  // The element of operand `i` (flattened) at `index`. Halves arrive as f32, the dtype to compute
  // in.
  virtual loop::Expr operand(const Node& node, int i, std::span<const loop::Expr> index) = 0;
  // A fresh variable in [0, extent).
  virtual loop::Var fresh_var(const Dim& extent) = 0;
  virtual loop::Pool& pool() = 0;
  // Simplifies an index with the ranges of the kernel's variables.
  virtual loop::Expr simplify(loop::Expr index) = 0;

  // What was read at an index clamped into dims of this product: where a size makes that 0 there is
  // nothing to read, and each read gives 0.
  loop::Expr when_any(const Dim& extent, loop::Expr read);
  // Operand `i` at `index` of the result, broadcast from the right as NumPy does.
  loop::Expr broadcast_operand(const Node& node, int i, std::span<const loop::Expr> index);
  // A number or a size.
  loop::Expr integer(const Dim& value) { return pool().size(value); }
  // The same as a constant of the dtype, or cast to it.
  loop::Expr count(const Dim& value, DType dtype);
  // Element `i` of a tensor as a constant of its dtype.
  loop::Expr literal(const Tensor& tensor, int64_t i);
  // op over r in [0, extents): body(r).
  loop::Expr reduce(loop::ReduceOp op, const Shape& extents,
                    const std::function<loop::Expr(std::span<const loop::Expr>)>& body);
  // Row-major position of an index in a shape, and back.
  loop::Expr flatten(std::span<const loop::Expr> index, const Shape& shape);
  std::vector<loop::Expr> unflatten(loop::Expr position, const Shape& shape);
};

// The dtype arithmetic runs in: f32 for halves, the dtype itself otherwise.
DType compute_dtype(DType dtype);

}  // namespace lathe
