// What the code generator puts into a package's library beside the kernels.
#pragma once
#include <cstdint>

#include "backends/cpu/kernel_functions.h"

namespace lathe::cpu {

// Its layout is also that of the constant which ObjectMaker::make_package writes.
struct PackageData {
  const char* program;  // text, whose weights are those of the weights file
  uint64_t program_size;
  const KernelFunction* kernels;  // of the program, in order
  uint64_t num_kernels;
  const char* isa;  // the instruction set of the kernels, ended by a zero
  // Of the graph; what the program takes and gives behind them is state that runs change.
  uint64_t num_inputs, num_outputs;
  uint64_t weights_id;  // of the weights file that belongs to it
};

}  // namespace lathe::cpu
