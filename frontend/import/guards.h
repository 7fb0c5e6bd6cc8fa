// What the exporter says of the caller's arguments, as guards of symbols.
#pragma once
#include <string>
#include <vector>

#include "frontend/import/signature.h"
#include "ir/graph/node.h"

namespace lathe {

// Reads Python comparisons over L['x'].size()[0] and integer arguments, and adds to the module
// those that the ranges of its symbols do not settle. What is no such comparison goes to
// Signature::unread_guards.
void read_guards(const std::vector<std::string>& texts, Signature& signature, Module& module);

}  // namespace lathe
