// What the generic schedule asks of its expressions before it chooses what becomes lanes.
#pragma once
#include <cstdint>
#include <span>

#include "ir/loop/node.h"

namespace lathe {

inline constexpr int64_t kMostOperations = int64_t{1} << 31;  // counts beyond it stay at it

// Whether the reductions that move with `inner` read memory along their own last variable instead.
bool prefers_reduction_axis(std::span<const loop::Expr> values, loop::Var inner);
// Whether no reduction stays the same along `inner`.
bool has_own_reductions(std::span<const loop::Expr> values, loop::Var inner);
// Whether what they read, side by side along `column`, begins another page at every step: the more
// of each row is read at once, the less often.
bool read_far_rows(std::span<const loop::Reduce> reductions, loop::Var column);
// Bytes of the widest result or f64; at least four, unless no value on the way has as many.
int64_t widest_element(std::span<const loop::Expr> values);

}  // namespace lathe
