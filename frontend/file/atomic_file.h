// Files that are either there whole or not at all.
#pragma once
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lathe {

// Writes a neighbour of `path`, flushes it to the disk and renames it over `path`. On failure the
// old file, if any, is untouched and nothing is left behind. What is no regular file (a device, a
// pipe, a link) is written to as it is. The Diag names the path.
Status write_file(const std::string& path, std::string_view bytes);

}  // namespace lathe
