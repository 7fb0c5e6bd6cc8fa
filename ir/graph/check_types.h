// Whether types are what ops make of their operands, once sizes that were symbols are numbers.
#pragma once
#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// `diag` at `node`, unless it names a place itself.
Diag located(Diag diag, const Node& node);

// While they were symbols, sizes only had to agree as far as was known. The Diag is of the first
// node that does not take its operands as they are, or makes something else of them than its type
// says. Sizes that still are symbols may be anything.
Status check_types(const Graph& graph);

}  // namespace lathe
