// A program bound to a device: kernels loaded, weights uploaded where they are not there already,
// one arena for temporaries.
#pragma once
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/binding/binding.h"
#include "backends/cuda/device/driver.h"
#include "backends/cuda/device/library_plans.h"
#include "backends/cuda/device/recordings.h"
#include "backends/cuda/emit_program.h"
#include "ir/program/binding.h"

namespace lathe::cuda {

class CudaExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> create(const Program& program,
                                                    const CompileOptions& options,
                                                    const Target& target);
  ~CudaExecutable() override;

  Status bind(std::span<const int64_t> sizes) override;
  Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) override;
  Status copy(const BufferView& from, const BufferView& to) override;
  const ExecutableStats& stats() const override { return stats_; }
  Result<std::shared_ptr<std::byte>> allocate(size_t num_bytes, const std::string& what) override;
  Status wait() override;
  void set_stream(void* stream) override { caller_stream_ = static_cast<CUstream>(stream); }
  std::vector<double> step_seconds() const override { return step_seconds_; }
  void set_timing(bool on) override { is_timing_ = on; }

 private:
  // The kernels on the device, by their number in the program; null where nothing launches them.
  struct Code {
    std::vector<CUmodule> modules;
    std::vector<CUfunction> functions;
    std::vector<LaunchShape> shapes;  // set last
    bool assumes_small_sizes = false;
    bool is_complete() const { return !shapes.empty(); }
  };
  // A launch with everything looked up: a kernel, a library's work, or a copy.
  struct Step {
    int kernel = -1;
    bool is_copy = false;
    std::vector<BufferId> buffers;
    std::vector<int64_t> offsets;  // of a kernel's buffers, in bytes
    std::string label;
    bool is_fenced = false;  // see fence_library
    // At the sizes that are bound.
    CUfunction function = nullptr;
    LaunchShape shape;
    std::span<const int64_t> sizes = {};          // of the kernel's dims
    std::shared_ptr<const LibraryRun> library{};  // null also for a call of nothing
    size_t copy_bytes = 0;
  };
  // What runs at one choice of sizes need, made when it is bound first; a program without symbols
  // has one.
  struct Bound {
    std::vector<int64_t> values;  // of the symbols
    Binding binding;              // empty without symbols
    bool has_small_sizes = true;
    std::vector<std::shared_ptr<const LibraryRun>> libraries;  // by step; null for none
    Recordings recordings = {};                                // of reduce-overhead
  };

  CudaExecutable(const Device& device, const Target& target, bool is_captured)
      : device_(device),
        target_(target),
        is_captured_(is_captured),
        workspace_(std::make_shared<Workspace>(is_captured)) {}
  Status make_steps(const Program& program, const CompileOptions& options);
  Status load_code(const Program& program, bool has_small_sizes, Code& code);
  Result<Step> make_step(const Program& program, const Launch& launch);
  void look_up_kernel(Step& step, const Code& code) const;
  void fence_library(const Program& program);
  Status place(const Program& program);
  Status upload(const ProgramBuffer& buffer, BufferId id, const CompileOptions& options);
  Status run_init(const Program& program, const CompileOptions& options);
  bool is_usable(const BufferView& view, size_t alignment) const;  // by kernels, where it lies
  Status stage(const Port& port, DeviceMemory& staging);
  Status grow_port(const Port& port, DeviceMemory& staging, const Binding& binding);
  Status bind_inputs(std::span<const BufferView> inputs);
  // `is_staged`: all outputs go through memory of the program's own.
  Status bind_outputs(std::span<const BufferView> inputs, std::span<const BufferView> outputs,
                      bool is_staged);
  Status copy(CUdeviceptr to, CUdeviceptr from, size_t num_bytes, const std::string& what);
  // executable_sizes.cpp
  Status prepare_sizes(const Program& program);
  Status reserve_most();
  Result<Bound> make_bound(std::span<const int64_t> values);
  Status plan_libraries(Bound& bound);
  Status check_kernels(Bound& bound);
  Status reserve(const Binding& binding);
  Status grow(DeviceMemory& memory, size_t num_bytes, const std::string& what,
              std::string_view reason);
  void use(Bound& bound);
  Status drop_recordings(std::string_view reason);
  Status drop_oldest_sizes();

  Status execute(const Step& step, CUstream stream);
  Status execute_all(CUstream stream);
  Status time_all(CUstream stream);
  Status run_recorded(std::span<const BufferView> inputs, std::span<const BufferView> outputs);
  Status record(const Recordings::Places& places);
  Recordings::Places output_places();
  CUdeviceptr& address(BufferId id) { return addresses_[static_cast<size_t>(id)]; }

  const Device& device_;
  const Target& target_;
  std::string name_;
  Code code_, large_code_;  // the latter for sizes that the first cannot take, made when one comes
  CUstream own_stream_ = nullptr, caller_stream_ = nullptr, stream_ = nullptr;
  const bool is_captured_;              // reduce-overhead
  std::vector<CUdeviceptr> addresses_;  // by buffer id; those of ports change with every call
  std::vector<Port> inputs_, outputs_;
  std::vector<DeviceMemory> input_staging_, output_staging_;  // where the caller's will not do
  PlannedMemory<DeviceMemory> memory_;
  DeviceMemory fence_;
  std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<LibraryPlans> plans_;
  std::optional<Program> symbolic_;    // what other sizes are planned and compiled from
  std::optional<Binder> binder_;       // of that
  std::list<Bound> seen_;              // the latest first; few
  Bound* bound_ = nullptr;             // one of them
  std::vector<DeviceMemory> weights_;  // by buffer id
  std::vector<Step> init_, steps_;
  ExecutableStats stats_;
  bool is_timing_ = false;
  std::vector<double> step_seconds_;
};

}  // namespace lathe::cuda
