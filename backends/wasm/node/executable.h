// A program in a Node process, which is its own as long as it lives.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/binding/binding.h"
#include "backends/wasm/emit_program.h"
#include "backends/wasm/node/shared_process.h"
#include "ir/program/binding_cache.h"

namespace lathe::wasm {

class NodeExecutable final : public Executable {
 public:
  // Emits, gets a process, and runs init with one launch's weights in memory at a time. One thread
  // runs it, whatever the options ask for.
  static Result<std::unique_ptr<Executable>> create(const Program& program,
                                                    const CompileOptions& options, Isa isa,
                                                    const NodeInfo& node);

  Status bind(std::span<const int64_t> sizes) override;
  Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) override;
  const ExecutableStats& stats() const override { return stats_; }
  std::vector<double> step_seconds() const override { return step_seconds_; }
  void set_timing(bool on) override { is_timing_ = on; }

 private:
  NodeExecutable() = default;
  Status run_init(const Program& program, const Layout& layout, const CompileOptions& options);
  Status write_weights(const Program& program, const std::vector<Placement>& places,
                       const CompileOptions& options);

  // The step of an assertion that does not hold, behind a call that trapped; else what it was.
  Status explain(Status trapped);

  uint32_t address_of(const Port& port) const { return addresses_[static_cast<size_t>(port.id)]; }

  std::string name_;
  BorrowedProcess process_;
  std::vector<Port> inputs_, outputs_;
  std::vector<uint32_t> addresses_;  // by buffer
  // Of a program with symbols: itself without its kernels, its module without code.
  struct Symbolic {
    explicit Symbolic(const Program& of) : bindings(of) {}
    BindingCache bindings;
    std::shared_ptr<const Binding> bound = nullptr;
    Program program;
    CompiledProgram compiled;
  };
  std::unique_ptr<Symbolic> symbolic_;
  size_t num_steps_ = 0;
  struct Assertion {
    AssertLaunch launch;
    size_t step;
    Loc loc;
  };
  std::vector<Assertion> assertions_;
  ExecutableStats stats_;
  bool is_timing_ = false;
  std::vector<double> step_seconds_;
};

}  // namespace lathe::wasm
