// What PyTorch's guards call the sizes of a caller's arguments.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "frontend/import/signature.h"
#include "ir/graph/node.h"

namespace lathe {

// Of each leaf of the signature's arguments: "L['x']", "L['batch']['tokens'][0]".
std::vector<std::string> argument_sources(const Signature& signature);

// Of each symbol that a caller's tensor has for a size, or a multiple of it, or that an integer
// gives: "L['x'].size()[0]", "L['x'].size()[2]//32", "L['n']". Without a signature, arguments have
// the names of params.
std::map<std::string, std::string> symbol_sources(const Module& module, const Signature* signature);

}  // namespace lathe
