// What the cost model reckons with, measured on this machine and kept.
#pragma once
#include <memory>
#include <string>

#include "backends/backend.h"
#include "ir/support/result.h"
#include "ir/target/target.h"

namespace lathe {

// Measures one core in about a second, with kernels of Lathe's own: the rate of dependent
// operations, multiply-adds of whole registers, and streams through each level of memory. The
// backend is a CPU's.
Result<Rates> measure_rates(Backend& backend);

// $XDG_CACHE_HOME/lathe/rates or ~/.cache/lathe/rates, a file for each processor and instruction
// set; "" where there is no home.
std::string rates_path(const Target& target);
Status save_rates(const Target& target, const Rates& rates);
// kMissingFile when nothing was measured; kBadValue for a file that is torn, or of other figures
// than a machine can have.
Result<Rates> load_rates(const Target& target);

}  // namespace lathe
