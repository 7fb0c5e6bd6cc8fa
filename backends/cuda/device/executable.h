// A program bound to a device: kernels loaded, weights uploaded, one arena for temporaries.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/binding/binding.h"
#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/library_plans.h"
#include "backends/cuda/emit_program.h"

namespace lathe::cuda {

class CudaExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> create(const Program& program,
                                                    const CompileOptions& options,
                                                    const Target& target);
  ~CudaExecutable() override;

  Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) override;
  const ExecutableStats& stats() const override { return stats_; }
  void set_stream(void* stream) override { caller_stream_ = static_cast<CUstream>(stream); }
  std::vector<double> step_seconds() const override { return step_seconds_; }
  void set_timing(bool on) override { is_timing_ = on; }

 private:
  // A launch with everything looked up: a kernel, a library's work, or a copy.
  struct Step {
    CUfunction function = nullptr;
    LaunchShape shape;
    LibraryRun library;
    std::vector<BufferId> buffers;
    std::vector<int64_t> offsets;  // of a kernel's buffers, in bytes
    size_t copy_bytes = 0;
    std::string label;
    bool is_fenced = false;  // see fence_library
  };

  explicit CudaExecutable(const Device& device) : device_(device) {}
  Status load_code(const Program& program, const Target& target);
  Result<Step> make_step(const Program& program, const ProgramSource& source,
                         const LibraryPlans& plans, const Launch& launch);
  void fence_library(const Program& program);
  Status place(const Program& program);
  Status upload(const ProgramBuffer& buffer, BufferId id, const CompileOptions& options);
  Status run_init(const Program& program, const CompileOptions& options);
  bool is_usable(const BufferView& view) const;  // by kernels, where it lies
  Status stage(const Port& port, DeviceMemory& staging);
  Status bind_ports(std::span<const BufferView> inputs, std::span<const BufferView> outputs);
  Status copy(CUdeviceptr to, CUdeviceptr from, size_t num_bytes, const std::string& what);
  Status execute(const Step& step, CUstream stream);
  Status execute_all(CUstream stream);
  Status time_all(CUstream stream);
  Status replay();
  CUdeviceptr& address(BufferId id) { return addresses_[static_cast<size_t>(id)]; }

  const Device& device_;
  std::string name_;
  CUmodule module_ = nullptr;
  CUstream own_stream_ = nullptr, caller_stream_ = nullptr, stream_ = nullptr;
  CUgraphExec graph_ = nullptr;
  bool is_captured_ = false;            // reduce-overhead
  std::vector<CUdeviceptr> addresses_;  // by buffer id; those of ports change with every call
  std::vector<Port> inputs_, outputs_;
  std::vector<DeviceMemory> input_staging_, output_staging_;  // where the caller's will not do
  PlannedMemory<DeviceMemory> memory_;
  DeviceMemory fence_;
  std::shared_ptr<Workspace> workspace_ = std::make_shared<Workspace>();
  std::vector<DeviceMemory> weights_;  // by buffer id
  std::vector<Step> init_, steps_;
  ExecutableStats stats_;
  bool is_timing_ = false;
  std::vector<double> step_seconds_;
};

}  // namespace lathe::cuda
