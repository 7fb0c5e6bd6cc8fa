// The symbolic sizes of a module, by name.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// Each once: in the order in which params have them, then those that are only declared, then those
// that only nodes have.
std::vector<std::string> symbols_of(Module& module);

// "PASS: the graph has no symbol 's'; did you mean 's0'?"
Diag unknown_symbol(const std::string& pass, const std::string& name,
                    const std::vector<std::string>& symbols);

}  // namespace lathe
