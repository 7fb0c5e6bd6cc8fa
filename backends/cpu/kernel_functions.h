// Compiled kernels as whoever runs a program sees them, wherever their code came from.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace lathe::cpu {

// Runs the iterations of the kernel's parallel loop from `lo` to before `hi`. `buffers`: the
// addresses of the kernel's global buffers, then that of its launch's sizes.
using KernelFunction = void (*)(void* const* buffers, int64_t lo, int64_t hi, void* scratch);

struct KernelFunctions {
  std::vector<KernelFunction> by_kernel;  // of a program; null for those that no launch uses
  std::shared_ptr<const void> owner;      // of the code; null: it stays by itself
  double codegen_ms = 0;                  // that making them took
};

}  // namespace lathe::cpu
