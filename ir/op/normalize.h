// What normalisations share: statistics of rows of elements, and the affine map behind them.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/op/element.h"
#include "ir/op/import_call.h"
#include "ir/op/term.h"
#include "ir/support/result.h"

namespace lathe {

// Operand `operand` is absent or has this shape.
Status check_channel(const Node& node, size_t operand, const Shape& expected);
Result<std::vector<TensorType>> infer_same_as_input(const Node& node);
// The dtype a normalisation of operand 0 computes in.
DType normalize_dtype(const Node& node);

// Normalises each run of `row` consecutive elements; affine(position) is where in weight and bias
// (operands 1 and 2) an element finds its factor and term.
Tensor normalize_rows(const Node& node, std::span<const Tensor* const> operands, int64_t row,
                      bool subtracts_mean, double eps,
                      const std::function<int64_t(int64_t)>& affine);

// (x - mean) * rsqrt(variance + eps): as graph code over `dims`, and of one element x from the
// elements of its row. The statistics do not depend on the position in the row, so the schedule
// computes them once per row.
Term normalized(Term x, std::vector<int64_t> dims, bool subtracts_mean, double eps);
loop::Expr lower_normalized(ElementContext& context, loop::Expr x, const Shape& extents,
                            bool subtracts_mean, double eps,
                            const std::function<loop::Expr(std::span<const loop::Expr>)>& element);

// weight * y + bias (operands 1 and 2, where present), `at` being their index; cast to the result.
loop::Expr lower_affine(ElementContext& context, const Node& node, loop::Expr y,
                        std::span<const loop::Expr> at);
// [C] as [C, 1, 1, ...], to broadcast along dim 1 of a tensor of this rank.
Term as_channel(Term x, int rank);

// The native forms of the norms also return their statistics, which only a backward pass reads.
Result<std::vector<Value>> import_native_norm(Builder& builder, const ImportCall& call);

}  // namespace lathe
