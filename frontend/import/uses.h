// Which values of a file anything reads.
#pragma once
#include <set>
#include <string>

#include "frontend/pt2/schema.h"

namespace lathe {

// Adds the names of tensors that calls read or that are returned, those of inner graphs too: each
// graph has names of its own, so a name may be here for another's sake.
void collect_read_names(const pt2::Graph& graph, std::set<std::string>& names);

}  // namespace lathe
