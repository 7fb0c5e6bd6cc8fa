// Makes a failing case small while it fails.
#pragma once
#include <functional>

#include "tests/random/case.h"

namespace lathe::random_graphs {

// `fails` answers whether a candidate still fails in the way that matters; it is asked some hundred
// times. Fewer outputs, nodes and passes come first, then smaller extents and plainer attributes,
// dtypes and values.
Case minimise(Case failing, const std::function<bool(const Case&)>& fails);

}  // namespace lathe::random_graphs
