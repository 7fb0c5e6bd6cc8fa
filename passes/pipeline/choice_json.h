// A choice of a kernel as JSON: the one form, in reports of passes, of launches and in the page.
#pragma once
#include "nlohmann/json_fwd.hpp"
#include "passes/pass.h"

namespace lathe {

// {"region", "plan", "forced", "candidates": [...]}. A candidate has its "plan", and "why_not", or
// else the lines of "force" that ask for it and, where the target has prices, the seconds
// "predicted" for all launches of the region.
nlohmann::ordered_json to_json(const KernelChoice& choice);

}  // namespace lathe
