// Ahead of time: a program as a library that needs neither Lathe nor a compiler.
#pragma once
#include <functional>
#include <string>

#include "backends/backend.h"
#include "backends/cpu/cpu_features.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::cpu {

struct PackageFiles {
  std::string library;  // NAME.so
  std::string header;   // NAME.h
  std::string weights;  // NAME.weights
};

struct PackageRequest {
  std::string name;  // begins the functions; is_c_name
  Isa isa = Isa::avx2;
  size_t num_inputs = 0, num_outputs = 0;  // of the graph, the first ones of the program's
  // Bytes of weights that steps read as they came, and of state, by name.
  std::function<Result<BufferView>(const std::string& name)> weight;
};

// `executable` was made of `program` by the CPU backend, for that instruction set. Links with the
// system's `cc`: kUnavailable where there is none, or it fails.
Result<PackageFiles> make_package(const Program& program, const Executable& executable,
                                  const PackageRequest& request);

}  // namespace lathe::cpu
