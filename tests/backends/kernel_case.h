// Holds what an emitter makes of a kernel against the evaluator of loop IR.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe {

using Memories = std::vector<std::vector<std::byte>>;  // one for each global buffer
using KernelRunner = std::function<Status(const loop::Kernel&, Memories&)>;

Status evaluate_kernel(const loop::Kernel& kernel, Memories& memory);

// GoogleTest failures for a kernel that is not valid, does not run, or leaves other bytes behind
// than the evaluator does, from random contents.
void expect_kernel_runs(const loop::Kernel& kernel, const KernelRunner& run, uint64_t seed);

std::string describe(const Diag& diag);

// y[i] = f(x[i]) over one vector of f32 per iteration.
loop::Kernel make_map(int lanes, loop::Expr (*f)(loop::Expr));

}  // namespace lathe
