// A program bound to memory and machine code, ready to run.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/binding/binding.h"
#include "backends/cpu/kernel_functions.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/thread_pool.h"
#include "backends/placement/frame.h"
#include "ir/program/binding_cache.h"

namespace lathe::cpu {

class CpuExecutable final : public Executable {
 public:
  // Allocates every buffer that is not the caller's, and runs init. `program` is verified and has
  // those kernels.
  static Result<std::unique_ptr<Executable>> create(const Program& program,
                                                    const CompileOptions& options,
                                                    KernelFunctions kernels);

  Status bind(std::span<const int64_t> sizes) override;
  Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) override;
  const ExecutableStats& stats() const override { return stats_; }
  std::shared_ptr<const std::byte> persistent(BufferId id) const override;
  std::vector<double> step_seconds() const override { return step_seconds_; }
  void set_timing(bool on) override { is_timing_ = on; }

 private:
  // A launch with everything looked up: a kernel, or where `function` is null a copy or an
  // assertion.
  struct Step {
    KernelFunction function = nullptr;
    placement::KernelFrame frame;
    int64_t grain = 1;
    std::vector<BufferId> buffers;
    std::vector<int64_t> offsets;  // of a kernel's buffers, in bytes
    size_t copy_bytes = 0;
    std::shared_ptr<const AssertLaunch> assertion = nullptr;
    Loc loc = {};
    std::span<const int64_t> sizes = {};  // of the kernel's dims, where they are bound
  };

  CpuExecutable() = default;
  Status place(const Program& program);
  Status reserve(const Binding& binding);
  Result<std::vector<Step>> make_steps(const Program& program, const std::vector<Launch>& launches);
  Result<Step> make_step(const Program& program, const Launch& launch);
  Status bind_weight(const ProgramBuffer& buffer, BufferId id, const CompileOptions& options);
  Status run_init(const Program& program, const CompileOptions& options);
  Status bind_input(size_t index, const BufferView& view);
  Status bind_output(size_t index, const BufferView& view, std::span<const BufferView> inputs);
  void execute(const Step& step);
  Status check(const Step& step) const;

  std::string name_;
  std::vector<std::byte*> addresses_;  // by buffer id; those of ports change with every call
  std::vector<Port> inputs_, outputs_;
  std::vector<Block> input_staging_, output_staging_;  // where the caller's memory will not do
  std::map<BufferId, Block> weight_copies_;            // of misaligned ones
  PlannedMemory<Block> memory_;
  Block scratch_;
  size_t scratch_stride_ = 0;  // of one worker
  KernelFunctions kernels_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<Step> init_, steps_;
  std::optional<BindingCache> bindings_;  // of a program with symbols
  std::shared_ptr<const Binding> bound_;
  ExecutableStats stats_;
  bool is_timing_ = false;
  std::vector<double> step_seconds_;
};

}  // namespace lathe::cpu
