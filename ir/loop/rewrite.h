// Replacing expressions throughout a kernel.
#pragma once
#include <cstdint>
#include <functional>

#include "ir/loop/node.h"

namespace lathe::loop {

// Every expression of the kernel becomes what `rule` makes of it, operands first: `rule` gets a
// node whose operands are replaced already, and returns it or another one with its dtype and lanes.
// New expressions go to the kernel's pool: kernels that share one must not be rewritten at once.
void rewrite(Kernel& kernel, const std::function<Expr(Expr)>& rule);

// Every index into a buffer, of loads, stores and prefetches, becomes what `rule` makes of it, an
// index with as many lanes; those that it contains come first. `reach` is how many elements from
// the index on are moved, 0 for a prefetch. A load that several expressions share is asked for
// once.
using IndexRule = std::function<Expr(BufferRef buffer, Expr index, int64_t reach)>;
void rewrite_indices(Kernel& kernel, const IndexRule& rule);

}  // namespace lathe::loop
