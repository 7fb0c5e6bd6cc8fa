// Random cases: one to a dozen nodes over every row, biased to what passes look for.
#pragma once
#include <cstdint>

#include "tests/random/case.h"

namespace lathe::random_graphs {

// Case `index` of a seed, whatever the others are. Its pipeline is `minimal`, `default`, or
// `default` with passes left out.
Case generate(uint64_t seed, uint64_t index);

}  // namespace lathe::random_graphs
