// The C header of a package.
#pragma once
#include <string>

#include "ir/program/program.h"

namespace lathe::cpu {

// Whether C can have functions that begin with it: letters, digits and '_', no digit first.
bool is_c_name(const std::string& name);

// `name` begins its functions; the graph has that many inputs and outputs, the first ones of the
// program's. `isa`: what the kernels need of a machine.
std::string package_header(const std::string& name, const Program& program, size_t num_inputs,
                           size_t num_outputs, const std::string& isa);

}  // namespace lathe::cpu
