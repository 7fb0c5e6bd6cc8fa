// Objects become a shared library by the system's linker.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lathe::cpu {

// The object with everything that a package has beside its program: made when Lathe was built.
std::string_view package_runtime();

// The library's bytes. Visible is what begins with `name` and '_'. Runs `cc`, in a folder of its
// own that is gone afterwards. kUnavailable where there is none, or with what it said.
Result<std::string> link_library(const std::vector<std::string>& objects, const std::string& name);

}  // namespace lathe::cpu
