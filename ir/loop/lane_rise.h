// How far apart the lanes of an expression lie, where none is below the one before it: what is read
// near one place needs no gather.
#pragma once
#include <optional>

#include "ir/loop/ranges.h"

namespace lathe::loop {

// A bound of the last minus the first one of any `lanes` neighbouring lanes, when lanes do not
// fall: of sums, products, quotients and casts of a ramp with constants, floats as they round.
// Nullopt where this does not follow.
std::optional<double> lane_rise(Expr e, int lanes, Ranges& ranges);

}  // namespace lathe::loop
