// NVIDIA's libraries for contractions: what a library launch becomes.
#pragma once
#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/executable.h"
#include "ir/program/program.h"

namespace lathe::cuda {

// Plans are made here, once: heuristics are asked and workspaces allocated.
Result<LibraryRun> plan_library(const Program& program, const LibraryLaunch& launch,
                                const Device& device);

// One routine each.
Result<LibraryRun> plan_matmul(const Program& program, const LibraryLaunch& launch,
                               const Device& device);

}  // namespace lathe::cuda
