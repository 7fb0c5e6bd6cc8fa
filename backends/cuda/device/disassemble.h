// Machine code as text, through NVIDIA's nvdisasm.
#pragma once
#include <string>

#include "ir/support/result.h"

namespace lathe::cuda {

// Looks for nvdisasm in $LATHE_CUDA/bin, the path and /usr/local/cuda/bin; the error says so.
Result<std::string> disassemble(const std::string& cubin);

}  // namespace lathe::cuda
