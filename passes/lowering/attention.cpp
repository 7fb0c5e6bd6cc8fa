// What the kinds that make attention share: see attention.h.
#include "passes/lowering/attention.h"

#include <cmath>
#include <limits>

#include "passes/lowering/operand.h"

namespace lathe {

using loop::Expr;

std::vector<Expr> attention_index(std::span<const Expr> batch, Expr row, Expr column) {
  std::vector<Expr> index(batch.begin(), batch.end());
  index.push_back(row);
  index.push_back(column);
  return index;
}

std::vector<Expr> attention_operand_index(KernelContext& kernel, const Shape& operand,
                                          const Shape& shape, std::span<const Expr> batch, Expr row,
                                          Expr column) {
  std::vector<Expr> index = batch_index(operand, batch, row, column);
  for (size_t d = 0; d + 2 < operand.size(); ++d) {
    const Dim &heads = shape[shape.size() - operand.size() + d], &extent = operand[d];
    if (extent != Dim(1) && extent != heads)
      index[d] = kernel.simplify(
          loop::floor_div(index[d], kernel.pool().size(Dim::floor_div(heads, extent))));
  }
  return index;
}

double attention_scale(const Node& attention, int64_t depth) {
  if (depth == 0) return 1;
  return attention.float_attr("scale", 1 / std::sqrt(static_cast<double>(depth)));
}

Expr masked_score(KernelContext& kernel, Value mask, std::span<const Expr> batch, Expr i, Expr t,
                  Expr score) {
  const Shape& shape = mask.type().shape;
  const std::vector<Expr> full = attention_index(batch, i, t);
  std::vector<Expr> index;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_broadcast = shape[d] == Dim(1);
    index.push_back(is_broadcast ? kernel.integer(0) : full[full.size() - shape.size() + d]);
  }
  Expr value = kernel.element_within(mask, index);
  if (value->dtype == DType::b8) {
    return loop::select(value, score,
                        loop::constant_like(score, -std::numeric_limits<double>::infinity()));
  }
  return score + loop::cast(value, score->dtype);
}

}  // namespace lathe
