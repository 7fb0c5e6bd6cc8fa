// Scaled dot-product attention: what its loops and its library launches share.
#pragma once
#include <span>
#include <vector>

#include "passes/lowering/kernel_context.h"

namespace lathe {

// Index of element (row, column) of the matrix at a batch index.
std::vector<loop::Expr> attention_index(std::span<const loop::Expr> batch, loop::Expr row,
                                        loop::Expr column);

// The index of element (row, column) of a query, key or value at the batch index of a result of
// `shape`: dims of extent 1 are broadcast, and with grouped queries several heads share one.
std::vector<loop::Expr> attention_operand_index(KernelContext& kernel, const Shape& operand,
                                                const Shape& shape,
                                                std::span<const loop::Expr> batch, loop::Expr row,
                                                loop::Expr column);

// What scales the products of an attention whose queries have `depth` elements; those of nothing
// are zero, whatever scales them.
double attention_scale(const Node& attention, int64_t depth);

// The score of query i and key t with the mask, additive or boolean and broadcast over the scores.
loop::Expr masked_score(KernelContext& kernel, Value mask, std::span<const loop::Expr> batch,
                        loop::Expr i, loop::Expr t, loop::Expr score);

}  // namespace lathe
