// LLVM from kernels to objects, and from objects to functions that can be called.
//
// LLVM does not clean up behind an exception, so what uses it here does not either (BUILD): when
// memory runs out, what LLVM was working on is left to lie.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/emit.h"
#include "backends/cpu/kernel_functions.h"
#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe::cpu {

struct KernelSource {
  const loop::Kernel* kernel;
  EmitOptions options;
};

enum class CodeForm : uint8_t { llvm_ir, assembly, object };

// One module with all the kernels, under their own names (made unique), as text or bytes.
Result<std::string> generate_code(const std::vector<KernelSource>& sources, CodeForm form);

// What a package's library has beside the runtime: see package/package_data.h.
struct PackageCode {
  std::string name;
  std::string program;
  std::string isa;
  uint64_t num_inputs, num_outputs, weights_id;
  std::vector<KernelSource> kernels = {};
  // Functions of the library, each with the one of the runtime that it is.
  std::vector<std::pair<std::string, std::string>> functions = {};
};
// One object with the kernels, the PackageData `lathe_package_data`, and the functions.
Result<std::string> generate_package(const PackageCode& code);

// Makes one object after the other. For one thread; its set-up costs as much as a small kernel.
class ObjectMaker {
 public:
  static Result<std::unique_ptr<ObjectMaker>> create();
  ~ObjectMaker();
  ObjectMaker(const ObjectMaker&) = delete;
  // The kernel's function gets the name `symbol`.
  Result<std::string> make(const KernelSource& source, const std::string& symbol);

 private:
  struct State;
  explicit ObjectMaker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Owns code; its functions live as long as it does.
class LinkedCode {
 public:
  struct Object {
    std::string symbol;  // of the one function in there, and of no other
    std::shared_ptr<const std::string> bytes;
  };
  // All at once: nobody destroys a session whose memory ran out.
  static Result<std::unique_ptr<LinkedCode>> link(const std::vector<Object>& objects);
  ~LinkedCode();
  LinkedCode(const LinkedCode&) = delete;
  const std::vector<KernelFunction>& functions() const { return functions_; }  // by object

 private:
  struct State;
  explicit LinkedCode(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::vector<KernelFunction> functions_;
};

}  // namespace lathe::cpu
