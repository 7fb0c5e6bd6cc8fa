// The runner's part for when something went wrong. Only this folder includes it.
#pragma once
#include <string>

#include "passes/pipeline/pipeline.h"

namespace lathe {

// Replays `steps` up to the failing one on `module`, which is as it was before the first, and
// prints the graph there as a .lathe file whose header names the target, what was decided by hand
// and the steps left: one, unless the failing one works on a program.
std::string make_reproducer(Module module, const Pipeline& steps, size_t failing, Form start,
                            const PassContext& context, const Diag& diag);

}  // namespace lathe
