// lathe compile --emit package: a model that runs without Lathe.
#pragma once
#include <string>

#include "frontend/cli/model_flags.h"

namespace lathe {

// Writes the package's files into `folder`, made when it is missing, and says which; the exit code.
int emit_package(const Loaded& loaded, const std::string& folder);

}  // namespace lathe
