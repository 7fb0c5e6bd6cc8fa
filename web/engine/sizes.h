// The sizes that a request is about, of programs and models that have symbols.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "ir/program/program.h"
#include "web/engine/request.h"

namespace lathe {

using Sizes = std::map<std::string, int64_t>;

// Of every symbol: what the request's member "dims" says, otherwise `known`, which has them all. A
// name in "dims" that is not among these is an error; that no range or guard forbids the sizes is
// not checked.
Result<Sizes> sizes_of(const Request& request, const Sizes& known);

// Those of the program's symbols that it was compiled with.
Sizes hints_of(const Program& program);

}  // namespace lathe
