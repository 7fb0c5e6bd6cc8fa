// Which library runs which routine.
#include "backends/cuda/device/libraries.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe::cuda {

Result<LibraryRun> plan_library(const Program& program, const LibraryLaunch& launch,
                                const Device& device) {
  if (launch.routine == "matmul") return plan_matmul(program, launch, device);
  return Diag{code::kUnavailable, Loc::unknown(),
              fmt::format("no library of the cuda target runs '{}'", launch.routine)};
}

}  // namespace lathe::cuda
