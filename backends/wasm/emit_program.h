// One module for a program:
//
//   k0, k1, ...        its kernels (emit.h)
//   init0, init1, ...  one for each launch of init, in order
//   step0, step1, ...  one for each launch of steps
//   run                all steps
//
// The host puts layout.weights and, before each init launch, what is staged for it into memory;
// then inputs, `run`, outputs. Hosts with workers call kernels over parts of their range instead.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "backends/wasm/emit.h"
#include "backends/wasm/layout.h"
#include "backends/wasm/module.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::wasm {

struct CompiledProgram {
  Module module;  // its segments point into the program
  Layout layout;
  std::vector<placement::KernelFrame> frames;  // by kernel, of those that launches use

  // The scratch memory that steps need at these sizes.
  int64_t scratch_bytes_at(const Program& program, const Binding& binding) const;
};

// The program must be verified and outlive the result. Launches other than kernels and copies are
// an error.
Result<CompiledProgram> emit_program(const Program& program, Isa isa);

// What a host needs to drive the module, as JSON: the memory's size, where weights, inputs and
// outputs go, and each launch with its function, or its kernel's with arguments and range. Of a
// program with symbols all is at these sizes of them, and the host writes the "table" before it
// calls "run"; the module is the same for all sizes.
Result<std::string> layout_json(const Program& program, const CompiledProgram& compiled,
                                const std::map<std::string, int64_t>& sizes);

}  // namespace lathe::wasm
