// The list of backends of a library that travels to a GPU: one.
#include <fmt/format.h>

#include "backends/cuda/device/backend.h"
#include "frontend/driver/backends.h"
#include "ir/support/diag_codes.h"

namespace lathe {

std::vector<std::string> backend_names() { return {"cuda"}; }

Result<std::unique_ptr<Backend>> make_backend(const std::string& target, const std::string& isa) {
  if (target == "cuda") return make_cuda_backend(isa);
  return Diag{code::kBadValue, Loc::unknown(),
              fmt::format("this library has the target cuda alone, got '{}'", target)};
}

}  // namespace lathe
