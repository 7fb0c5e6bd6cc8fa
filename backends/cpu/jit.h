// Machine code from kernels: modules, code generation (on several threads) and linking.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/emit.h"
#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe::cpu {

using KernelFunction = void (*)(void* const* buffers, int64_t lo, int64_t hi, void* scratch);

struct KernelSource {
  const loop::Kernel* kernel;
  EmitOptions options;
};

enum class CodeForm : uint8_t { llvm_ir, assembly, object };

// One module with all the kernels, under their own names (made unique), as text or bytes.
Result<std::string> generate_code(const std::vector<KernelSource>& sources, CodeForm form);

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
  static Result<std::unique_ptr<Jit>> compile(const std::vector<KernelSource>& sources, int threads,
                                              ObjectCache& cache);
  ~Jit();
  Jit(const Jit&) = delete;
  const std::vector<KernelFunction>& functions() const { return functions_; }

 private:
  Jit();
  struct State;
  std::unique_ptr<State> state_;
  std::vector<KernelFunction> functions_;
};

}  // namespace lathe::cpu
