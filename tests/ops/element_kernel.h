// The plain kernel of one node, a loop over the elements of a result, and how to run it.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe {

// store result[i] = lower(index of i), for every i. Its buffers are the node's operands and then
// the result; `symbols` are those of the node's sizes.
loop::Kernel element_kernel(const Node& node, int result,
                            const std::map<std::string, DimRange>& symbols = {});

// Its result, of this type, where its dims have these values. The kernel is verified first.
Result<Tensor> run_kernel(const loop::Kernel& kernel, const std::vector<Tensor>& inputs,
                          const TensorType& type, std::span<const int64_t> sizes = {});

// Where the first difference beyond a few roundings lies; empty when there is none.
std::string difference(const Tensor& expected, const Tensor& got);

}  // namespace lathe
