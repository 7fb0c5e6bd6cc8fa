// Machine code of a program's kernels: generated on several threads, kept, and linked.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/codegen.h"
#include "ir/support/result.h"

namespace lathe::cpu {

// Objects of kernels by structure, so that a kernel which several programs use is compiled once.
// Bounded; safe to share between threads.
class ObjectCache {
 public:
  ObjectCache();
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;

 private:
  friend class Jit;
  struct State;
  std::unique_ptr<State> state_;
};

// Owns linked code; the functions live as long as it does.
class Jit {
 public:
  // Compiles on up to `threads` threads and links. functions() follows the order of the sources.
  // What `code` has is not compiled, and then it has all of them.
  static Result<std::unique_ptr<Jit>> compile(const std::vector<KernelSource>& sources, int threads,
                                              ObjectCache& cache, KernelCode* code = nullptr);
  ~Jit();
  Jit(const Jit&) = delete;
  const std::vector<KernelFunction>& functions() const { return functions_; }

 private:
  Jit();
  std::unique_ptr<LinkedCode> code_;
  std::vector<KernelFunction> functions_;
};

}  // namespace lathe::cpu
