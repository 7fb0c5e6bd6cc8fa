// Replacing expressions throughout a kernel.
#pragma once
#include <functional>

#include "ir/loop/node.h"

namespace lathe::loop {

// Every expression of the kernel becomes what `rule` makes of it, operands first: `rule` gets a
// node whose operands are replaced already, and returns it or another one with its dtype and lanes.
// New expressions go to the kernel's pool: kernels that share one must not be rewritten at once.
void rewrite(Kernel& kernel, const std::function<Expr(Expr)>& rule);

}  // namespace lathe::loop
