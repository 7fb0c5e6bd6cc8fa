// The backends by name.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/support/result.h"

namespace lathe {

// The backend of a target ("cpu") and instruction set ("" for this machine's best).
Result<std::unique_ptr<Backend>> make_backend(const std::string& target, const std::string& isa);
std::vector<std::string> backend_names();

}  // namespace lathe
