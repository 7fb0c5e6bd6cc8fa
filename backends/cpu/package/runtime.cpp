// See runtime.h; package_abi.cpp puts it behind C functions.
#include "backends/cpu/package/runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "backends/binding/mutations.h"
#include "backends/cpu/cpu_features.h"
#include "backends/cpu/executable.h"
#include "backends/cpu/package/frozen.h"
#include "ir/program/text.h"
#include "ir/support/diag_codes.h"

namespace lathe::cpu {
namespace {

Diag file_error(const std::string& path, const std::string& why) {
  return {code::kMissingFile, Loc::unknown(), fmt::format("{}: {}", path, why)};
}

struct File {
  std::FILE* file;
  ~File() {
    if (file) std::fclose(file);
  }
  bool read(void* to, size_t size) { return std::fread(to, 1, size, file) == size; }
};

}  // namespace

Result<std::unique_ptr<Package>> Package::load(const PackageData& data, const std::string& weights,
                                               int threads) {
  LATHE_TRY(const Isa isa, select_isa(data.isa));
  (void)isa;  // the machine has it
  std::unique_ptr<Package> package(new Package());
  LocTable locs;
  LATHE_TRY(package->program_, parse_program({data.program, data.program_size}, locs));
  package->num_inputs_ = data.num_inputs;
  package->num_outputs_ = data.num_outputs;
  package->plan_ = plan_weights(package->program_, package->num_inputs_);
  LATHE_DO(package->read_weights(weights, data.weights_id));
  KernelFunctions kernels;
  kernels.by_kernel.assign(data.kernels, data.kernels + data.num_kernels);
  CompileOptions options;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  options.threads = threads > 0 ? threads : std::max(cores, 1);
  options.weight = [&](const std::string& name) -> Result<BufferView> {
    if (const auto* place = package->plan_.find(name)) return package->weight(*place);
    return internal_error("the package lacks weight '" + name + "'", __FILE__, __LINE__);
  };
  LATHE_TRY(package->executable_,
            CpuExecutable::create(package->program_, options, std::move(kernels)));
  LATHE_DO(package->make_state());
  return package;
}

Status Package::read_weights(const std::string& path, uint64_t id) {
  File file{std::fopen(path.c_str(), "rb")};
  if (!file.file) return file_error(path, std::strerror(errno));
  char header[kWeightsHeaderBytes];
  const bool has_header = file.read(header, sizeof header);
  const Status status = has_header
                            ? check_weights_header({header, sizeof header}, id, plan_.num_bytes)
                            : Status(file_error(path, "it is no weights file of a package"));
  if (!status.ok()) return file_error(path, status.error().message);
  const auto num_bytes = static_cast<size_t>(plan_.num_bytes);
  LATHE_TRY(weights_, Block::allocate(num_bytes, "the weights"));
  if (num_bytes > 0 && !file.read(weights_.address(), num_bytes))
    return file_error(path, "the file is not whole");
  return Ok{};
}

BufferView Package::weight(const WeightsPlan::Place& place) const {
  return {weights_.address() + place.offset, static_cast<size_t>(place.num_bytes)};
}

Status Package::make_state() {
  for (size_t i = num_inputs_; i < program_.inputs.size(); ++i) {
    const ProgramBuffer& buffer = program_.buffers[static_cast<size_t>(program_.inputs[i])];
    LATHE_TRY(Block block, Block::allocate(static_cast<size_t>(buffer.num_bytes.value()),
                                           "a buffer that runs change"));
    const auto* first = plan_.find(buffer.name);
    if (first != nullptr && first->num_bytes > 0)
      std::memcpy(block.address(), weight(*first).bytes, weight(*first).num_bytes);
    state_.push_back(std::move(block));
  }
  results_.resize(program_.outputs.size() - num_outputs_);
  return Ok{};
}

int64_t Package::bytes_of(BufferId id) const {
  const Result<int64_t> bytes =
      program_.buffers[static_cast<size_t>(id)].num_bytes.evaluate(sizes_);
  return bytes.ok() ? *bytes : -1;
}

std::vector<int64_t> Package::output_shape(size_t index) const {
  std::vector<int64_t> shape;
  const auto id = static_cast<size_t>(program_.outputs[index]);
  for (const Dim& dim : program_.buffers[id].type.shape) {
    const Result<int64_t> extent = dim.evaluate(sizes_);
    shape.push_back(extent.ok() ? *extent : -1);
  }
  return shape;
}

Status Package::bind(std::span<const int64_t> sizes) {
  LATHE_DO(executable_->bind(sizes));
  size_t next = 0;
  for (const auto& [symbol, range] : program_.symbols) sizes_[symbol] = sizes[next++];
  return Ok{};
}

Status Package::run(const void* const* inputs, void* const* outputs) {
  std::vector<BufferView> from, to;
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const auto num_bytes = static_cast<size_t>(std::max<int64_t>(input_bytes(i), 0));
    from.push_back(
        i < num_inputs_
            ? BufferView{static_cast<std::byte*>(const_cast<void*>(inputs[i])), num_bytes}
            : BufferView{state_[i - num_inputs_].address(), num_bytes});
  }
  for (size_t i = 0; i < program_.outputs.size(); ++i) {
    const auto num_bytes = static_cast<size_t>(std::max<int64_t>(output_bytes(i), 0));
    if (i < num_outputs_) {
      to.push_back({static_cast<std::byte*>(outputs[i]), num_bytes});
      continue;
    }
    Block& result = results_[i - num_outputs_];
    if (result.size() < num_bytes) {
      LATHE_TRY(result, Block::allocate(num_bytes, "what a run changes"));
    }
    to.push_back({result.address(), num_bytes});
  }
  LATHE_DO(executable_->run(from, to));
  return write_back(program_, *executable_, from, to);
}

}  // namespace lathe::cpu
