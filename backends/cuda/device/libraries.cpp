// Which library runs which routine.
#include "backends/cuda/device/libraries.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe::cuda {

Result<LibraryRun> plan_library(const Program& program, const LibraryLaunch& launch,
                                std::shared_ptr<Workspace> workspace) {
  if (launch.routine == "matmul") return plan_matmul(program, launch, std::move(workspace));
  if (launch.routine == "convolution")
    return plan_convolution(program, launch, std::move(workspace));
  if (launch.routine == "attention") return plan_attention(program, launch, std::move(workspace));
  return Diag{code::kUnavailable, Loc::unknown(),
              fmt::format("no library of the cuda target runs '{}'", launch.routine)};
}

bool is_cudnn(const LibraryLaunch& launch) {
  return launch.routine == "convolution" || launch.routine == "attention";
}

std::vector<int64_t> launch_sizes(const LibraryLaunch& launch, const std::string& name) {
  for (const auto& [key, values] : launch.sizes)
    if (key == name) return values;
  return {};
}

}  // namespace lathe::cuda
