// Checks of paths (see path.h).
#include "frontend/file/path.h"

#include "ir/support/diag_codes.h"

namespace lathe {

Status check_path(const std::string& path) {
  const size_t end = path.find('\0');
  if (end == std::string::npos) return Ok{};
  return Diag{code::kBadValue, Loc::unknown(),
              "the path '" + path.substr(0, end) + "' goes on behind a NUL character"};
}

}  // namespace lathe
