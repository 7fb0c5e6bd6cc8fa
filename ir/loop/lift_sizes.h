// Between kernels over symbols and kernels over the numbers that a launch gives them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/loop/node.h"

namespace lathe::loop {

// Makes every size of the kernel a variable of kind `dim`, named n0, n1, ... in the order in which
// they are met, with its range and what divides it; sizes of buffers are written by these names.
// What each of them is, in their order: kernels that differ in symbols alone are equal afterwards.
std::vector<Dim> lift_sizes(Kernel& kernel);

// The variables of kind `dim`, in order.
std::vector<Var> dims(const Kernel& kernel);

// The kernel at these values of its dims, in order, as one without any: new expressions go to the
// kernel's pool. Values are in the dims' ranges.
Kernel at_sizes(Kernel kernel, std::span<const int64_t> values);

// Elements of a buffer, where the dims have these values.
int64_t num_elements(const Kernel& kernel, const Buffer& buffer, std::span<const int64_t> values);

}  // namespace lathe::loop
