// The backends of a test: the interpreter alone, so that nothing of LLVM runs.
#include "backends/interp/backend.h"
#include "frontend/driver/backends.h"

namespace lathe {

std::vector<std::string> backend_names() { return {"cpu"}; }

Result<std::unique_ptr<Backend>> make_backend(const std::string&, const std::string&) {
  return make_interpreter(*find_target("avx2"));
}

}  // namespace lathe
