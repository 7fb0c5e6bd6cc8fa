// The backends by name: the one place that lists them.
#include "frontend/driver/backends.h"

#include <fmt/format.h>

#include "backends/cpu/backend.h"
#include "backends/cuda/device/backend.h"
#include "backends/wasm/node/backend.h"
#include "frontend/driver/rates.h"
#include "ir/support/diag_codes.h"

namespace lathe {

std::vector<std::string> backend_names() { return {"cpu", "cuda", "wasm"}; }

Result<std::unique_ptr<Backend>> make_backend(const std::string& target, const std::string& isa) {
  if (target == "cpu") {
    LATHE_TRY(std::unique_ptr<Backend> backend, make_cpu_backend(isa));
    // Rates that cannot be read are as good as none: doctor says why.
    if (const Result<Rates> rates = load_rates(backend->target()); rates.ok())
      backend->set_rates(*rates);
    return backend;
  }
  if (target == "cuda") return make_cuda_backend(isa);
  if (target == "wasm") return make_wasm_backend(isa);
  std::string near = nearest(target, backend_names());
  return Diag{
      code::kBadValue, Loc::unknown(),
      fmt::format("no target named '{}'; {}", target,
                  near.empty() ? fmt::format("the targets are {}", fmt::join(backend_names(), ", "))
                               : fmt::format("did you mean '{}'?", near))};
}

}  // namespace lathe
