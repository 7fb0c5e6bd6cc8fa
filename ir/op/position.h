// Positions that come from data, for gathers and scatters: references fail on one out of range;
// lowered code stays inside the tensor whatever the data says.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/op/demands.h"
#include "ir/op/element.h"
#include "ir/support/result.h"

namespace lathe {

// Positions are integers.
Status check_positions(const Node& node, const TensorType& type);

// No position is inside a dim of size 0: positions there, and so a result with elements, are an
// error, as in PyTorch; of sizes that are symbols it is demanded.
Status check_source(const Node& node, const TensorType& source, size_t dim, const Shape& result);
void demand_source(Demands& demands, const TensorType& source, size_t dim, const Shape& result);

// Element `at` of `positions`, in [0, extent); negative ones count from the end.
Result<int64_t> position(const Node& node, const Tensor& positions, int64_t at, int64_t extent);
// The same for an expression; out of range, it is the nearest position or (wrapped) stays outside.
loop::Expr clamped_position(ElementContext& context, loop::Expr value, const Dim& extent);
loop::Expr wrapped_position(ElementContext& context, loop::Expr value, const Dim& extent);

// What combines writes with what is there: a sum for nodes with `accumulate`, what `reduce` says
// for those that have it ("sum", "prod", "amax" or "amin"); none when a write takes its place.
std::optional<loop::ReduceOp> write_op(const Node& node);

// Writes element `from` of src over element `at`, or combines them.
void write_element(const Node& node, Tensor& result, int64_t at, const Tensor& src, int64_t from);

// An element after all writes to its tensor, by pulling: written(k) says whether write k of the
// row-major `writes` goes to it, value(k) what it writes. The last write wins, or all are
// combined.
using WriteFn = std::function<loop::Expr(std::span<const loop::Expr>)>;
loop::Expr lower_writes(ElementContext& context, const Node& node, loop::Expr own,
                        const Shape& writes, const WriteFn& written, const WriteFn& value);

}  // namespace lathe
