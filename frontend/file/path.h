// Paths that come from files and command lines.
#pragma once
#include <string>

#include "ir/support/result.h"

namespace lathe {

// A path that the system sees as it is written (it ends paths at a NUL), and that configs, results
// and messages can name: UTF-8.
Status check_path(const std::string& path);

}  // namespace lathe
