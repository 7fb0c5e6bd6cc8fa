// The symbolic sizes of a module, by name.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// Each once: in the order in which params have them, then those that are only declared, then those
// that only nodes have.
std::vector<std::string> symbols_of(Module& module);

// Of the node's types and attributes, and of those of nodes that are fused in it.
bool has_symbols(const Node& node);

// Of the symbols that types and attributes have, and of those of guards that the module knows: what
// each may be, never less than 0, and the size at which choices are made, its hint or one that is
// usual in its range.
std::map<std::string, DimRange> ranges_of_symbols(Module& module);
std::map<std::string, int64_t> hints_of_symbols(Module& module);

// "PASS: the graph has no symbol 's'; did you mean 's0'?"
Diag unknown_symbol(const std::string& pass, const std::string& name,
                    const std::vector<std::string>& symbols);

}  // namespace lathe
