// Paths that come from files and command lines.
#pragma once
#include <string>

#include "ir/support/result.h"

namespace lathe {

// A path that the system sees as it is written: it ends paths at a NUL.
Status check_path(const std::string& path);

}  // namespace lathe
