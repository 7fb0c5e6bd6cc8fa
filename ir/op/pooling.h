// What pools share: windows over 1 to 3 trailing spatial dims of operand 0, from the attributes
// kernel_size, stride, padding, dilation and ceil_mode.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/graph/tensor.h"
#include "ir/loop/pool.h"
#include "ir/op/element.h"
#include "ir/op/window.h"

namespace lathe {

std::vector<int64_t> pool_kernel(const Node& node);
Result<std::vector<TensorType>> infer_pool(const Node& node);

// For every result element: visit(position, index, offsets of the elements in its window, none of
// padding, row-major).
using WindowVisit =
    std::function<void(int64_t, std::span<const int64_t>, std::span<const int64_t>)>;
void walk_windows(const Node& node, const Tensor& self, const Tensor& result,
                  const WindowVisit& visit);

// `op` over the window of a result element: tap(where it reads), `outside` for taps in padding.
using WindowTap = std::function<loop::Expr(const GuardedIndex& from)>;
loop::Expr reduce_window(ElementContext& context, const Node& node,
                         std::span<const loop::Expr> index, loop::ReduceOp op, double outside,
                         const WindowTap& tap);
// The same over the elements themselves.
loop::Expr lower_window(ElementContext& context, const Node& node,
                        std::span<const loop::Expr> index, loop::ReduceOp op, DType dtype,
                        double outside);

// Attributes, and the first arguments of the schema of a pool of `rank` ("2") dims.
AttrSpec pool_ints(std::string name);
AttrSpec pool_flag(std::string name, bool value);
std::string pool_arguments(const std::string& rank);

}  // namespace lathe
