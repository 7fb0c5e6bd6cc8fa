// Sizes of an executable: what is made when they are bound, what is kept of them, and what has to
// go when others come.
//
// Memory only grows. What grows moves, and recordings know where it was: they go then, and are made
// anew by the next run at their sizes. Plans of libraries stay.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/device/executable.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

constexpr size_t kMostSizes = 32;                      // that are kept
constexpr int64_t kMostReserved = int64_t{256} << 20;  // bytes taken before somebody asks

constexpr const char* kArenaGrew = "the arena grew";
constexpr const char* kPortGrew = "memory of an input or output grew";
constexpr const char* kWorkspaceGrew = "the libraries' workspace grew";

}  // namespace

Status CudaExecutable::prepare_sizes(const Program& program) {
  if (symbolic_) {
    binder_.emplace(*symbolic_);
    return reserve_most();
  }
  Bound& only = seen_.emplace_back();
  for (const Launch& launch : program.steps) {
    auto* library = std::get_if<LibraryLaunch>(&launch.kind);
    only.libraries.push_back(library ? plans_->of(library->call) : nullptr);
  }
  use(only);
  plans_.reset();
  return Ok{};
}

// Where the ranges of all symbols end, and what their ends need is little, it is taken at once:
// nothing moves then.
Status CudaExecutable::reserve_most() {
  std::vector<int64_t> most;
  for (const auto& [symbol, range] : symbolic_->symbols) {
    if (!range.max) return Ok{};
    most.push_back(*range.max);
  }
  const Result<Binding> binding = binder_->bind(most);
  if (!binding.ok()) return Ok{};  // a guard forbids them together, or they are too large
  int64_t bytes = binding->arena_bytes;
  if (is_captured_)
    for (const auto* ports : {&inputs_, &outputs_})
      for (const Port& port : *ports) bytes += binding->num_bytes[static_cast<size_t>(port.id)];
  if (bytes > kMostReserved) return Ok{};
  LATHE_DO(reserve(*binding));
  for (size_t i = 0; is_captured_ && i < outputs_.size(); ++i)
    LATHE_DO(grow_port(outputs_[i], output_staging_[i], *binding));
  return Ok{};
}

Status CudaExecutable::bind(std::span<const int64_t> sizes) {
  if (!symbolic_) return check_no_sizes(name_, sizes);
  const auto known = std::find_if(seen_.begin(), seen_.end(), [&](const Bound& bound) {
    return std::equal(bound.values.begin(), bound.values.end(), sizes.begin(), sizes.end());
  });
  if (known != seen_.end() && &*known == bound_) return Ok{};
  LATHE_DO(device_.use());
  if (known == seen_.end()) {
    LATHE_TRY(Bound made, make_bound(sizes));
    seen_.push_front(std::move(made));
  } else {
    seen_.splice(seen_.begin(), seen_, known);
  }
  Bound& next = seen_.front();
  if (Status reserved = reserve(next.binding); !reserved.ok()) {
    // What grew before is somewhere else now; what is lacking now was there.
    const bool has_arena =
        bound_ && static_cast<size_t>(bound_->binding.arena_bytes) <= memory_.arena.num_bytes();
    if (!has_arena) bound_ = nullptr;
    if (bound_) use(*bound_);
    return reserved;
  }
  use(next);
  return drop_oldest_sizes();
}

Result<CudaExecutable::Bound> CudaExecutable::make_bound(std::span<const int64_t> values) {
  Bound bound;
  bound.values.assign(values.begin(), values.end());
  LATHE_TRY(bound.binding, binder_->bind(values));
  LATHE_DO(check_kernels(bound));
  LATHE_DO(plan_libraries(bound));
  return bound;
}

Status CudaExecutable::check_kernels(Bound& bound) {
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].kernel < 0) continue;
    const std::vector<int64_t>& sizes = bound.binding.sizes[i];
    const int64_t blocks = code_.shapes[static_cast<size_t>(steps_[i].kernel)].blocks_at(sizes);
    if (blocks > target_.groups->most_blocks)
      return Diag{code::kTooLarge, Loc::unknown(),
                  fmt::format("at these sizes '{}' of program '{}' has {} blocks, expected at most "
                              "{}",
                              steps_[i].label, name_, blocks, target_.groups->most_blocks)};
    for (int64_t size : sizes)
      bound.has_small_sizes =
          bound.has_small_sizes && size <= kMostSmallSize && size >= -kMostSmallSize;
  }
  bound.has_small_sizes = bound.has_small_sizes || !code_.assumes_small_sizes;
  if (bound.has_small_sizes || large_code_.is_complete()) return Ok{};
  return load_code(*symbolic_, false, large_code_);
}

Status CudaExecutable::plan_libraries(Bound& bound) {
  std::vector<LibraryCall> calls;
  std::vector<size_t> makers;  // steps
  for (size_t i = 0; i < steps_.size(); ++i) {
    const auto* library = std::get_if<LibraryLaunch>(&symbolic_->steps[i].kind);
    if (!library) continue;
    LibraryCall call = at_sizes(library->call, bound.binding.sizes[i]);
    if (is_of_nothing(call)) continue;
    calls.push_back(std::move(call));
    makers.push_back(i);
  }
  plans_->start(calls);
  LATHE_DO(plans_->finish());
  bound.libraries.resize(steps_.size());
  for (size_t i = 0; i < calls.size(); ++i) bound.libraries[makers[i]] = plans_->of(calls[i]);
  if (const int64_t dropped = plans_->trim(); dropped > 0)
    stats_.drops[fmt::format("a library's plan: there were more than {}", LibraryPlans::kMost)] +=
        dropped;
  return Ok{};
}

// Room for what runs at these sizes need.
Status CudaExecutable::reserve(const Binding& binding) {
  LATHE_DO(grow(memory_.arena, static_cast<size_t>(binding.arena_bytes), "the arena", kArenaGrew));
  for (size_t i = 0; is_captured_ && i < inputs_.size(); ++i)
    LATHE_DO(grow_port(inputs_[i], input_staging_[i], binding));
  if (workspace_->is_enough()) return Ok{};
  LATHE_DO(drop_recordings(kWorkspaceGrew));
  return workspace_->allocate(device_);
}

Status CudaExecutable::grow_port(const Port& port, DeviceMemory& staging, const Binding& binding) {
  const int64_t bytes = binding.num_bytes[static_cast<size_t>(port.id)];
  return grow(staging, static_cast<size_t>(bytes), "'" + port.name + "'", kPortGrew);
}

Status CudaExecutable::stage(const Port& port, DeviceMemory& staging) {
  LATHE_DO(grow(staging, port.num_bytes, "'" + port.name + "'", kPortGrew));
  address(port.id) = staging.address();
  return Ok{};
}

// By a half at least, where that is to be had: sizes that rise one by one move it a few times.
Status CudaExecutable::grow(DeviceMemory& memory, size_t num_bytes, const std::string& what,
                            std::string_view reason) {
  const size_t before = memory.num_bytes();
  if (num_bytes <= before) return Ok{};
  LATHE_DO(drop_recordings(reason));
  memory = DeviceMemory();  // both together may be too much
  Result<DeviceMemory> made =
      DeviceMemory::allocate(device_, std::max(num_bytes, before + before / 2), what);
  if (!made.ok()) made = DeviceMemory::allocate(device_, num_bytes, what);
  Status status = made.ok() ? Status(Ok{}) : Status(made.error());
  if (!made.ok()) made = DeviceMemory::allocate(device_, before, what);
  if (made.ok()) memory = *std::move(made);
  return status;
}

void CudaExecutable::use(Bound& bound) {
  bound_ = &bound;
  const Code& code = bound.has_small_sizes ? code_ : large_code_;
  const Binding& binding = bound.binding;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    look_up_kernel(step, code);
    step.library = bound.libraries[i];
    if (!symbolic_) continue;
    if (step.kernel >= 0) step.sizes = binding.sizes[i];
    if (step.is_copy)
      step.copy_bytes =
          static_cast<size_t>(binding.num_bytes[static_cast<size_t>(step.buffers[0])]);
  }
  if (!symbolic_) return;
  for (size_t id = 0; id < addresses_.size(); ++id)
    if (binding.offsets[id] >= 0)
      addresses_[id] = memory_.arena.address() + static_cast<CUdeviceptr>(binding.offsets[id]);
  resize(inputs_, binding.num_bytes);
  resize(outputs_, binding.num_bytes);
  stats_.arena_bytes = binding.arena_bytes;
}

// Nothing that was started is at work afterwards.
Status CudaExecutable::wait() {
  for (CUstream stream : {stream_, own_stream_})
    if (stream)
      LATHE_DO(device_.check(device_.api().synchronize(stream), "waiting for '" + name_ + "'"));
  return Ok{};
}

Status CudaExecutable::drop_recordings(std::string_view reason) {
  LATHE_DO(wait());
  for (Bound& bound : seen_) {
    for (CUgraphExec recording : bound.recordings.take()) {
      device_.api().destroy_exec(recording);
      ++stats_.drops[fmt::format("a recording: {}", reason)];
    }
  }
  return Ok{};
}

Status CudaExecutable::drop_oldest_sizes() {
  while (seen_.size() > kMostSizes) {
    if (!seen_.back().recordings.empty()) LATHE_DO(wait());
    for (CUgraphExec recording : seen_.back().recordings.take()) {
      device_.api().destroy_exec(recording);
      ++stats_.drops[fmt::format("a recording: there were more than {} sizes", kMostSizes)];
    }
    seen_.pop_back();
  }
  return Ok{};
}

}  // namespace lathe::cuda
