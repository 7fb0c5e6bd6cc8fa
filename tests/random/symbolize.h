// Cases over symbols: sizes of a case's params become symbols, and every node's types follow.
#pragma once
#include <cstdint>
#include <optional>

#include "tests/random/case.h"

namespace lathe::random_graphs {

// The case with one or two of its sizes as symbols and some sizes to run it at, whatever ops make
// of them; nothing where no size can become one.
std::optional<Case> symbolize(const Case& from, uint64_t seed);

// The case at these sizes, without symbols; nothing where one of its ops forbids them.
std::optional<Case> at_sizes(const Case& test, const Sizes& sizes);

}  // namespace lathe::random_graphs
