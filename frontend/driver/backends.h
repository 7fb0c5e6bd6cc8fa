// The backends by name.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "frontend/driver/options.h"
#include "ir/support/result.h"

namespace lathe {

// The backend of a target ("cpu") and instruction set ("" for this machine's best).
Result<std::unique_ptr<Backend>> make_backend(const std::string& target, const std::string& isa);
std::vector<std::string> backend_names();

// The backend that a request names, which can run in its mode. Errors stand where the request says.
Result<std::unique_ptr<Backend>> choose_backend(const CompileRequest& request);

}  // namespace lathe
