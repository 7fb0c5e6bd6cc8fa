// Checks of paths (see path.h).
#include "frontend/file/path.h"

#include "ir/support/diag_codes.h"
#include "ir/support/printable.h"

namespace lathe {

Status check_path(const std::string& path) {
  const size_t end = path.find('\0');
  if (end != std::string::npos)
    return Diag{code::kBadValue, Loc::unknown(),
                "the path '" + path.substr(0, end) + "' goes on behind a NUL character"};
  if (!is_utf8(path))
    return Diag{code::kBadValue, Loc::unknown(), "the path '" + path + "' is not UTF-8"};
  return Ok{};
}

}  // namespace lathe
