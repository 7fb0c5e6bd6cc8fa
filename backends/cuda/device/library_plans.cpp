// Planning on threads.
#include "backends/cuda/device/library_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

constexpr size_t kMostThreads = 8;

}  // namespace

LibraryPlans::LibraryPlans(const Program& program, const Device& device,
                           std::shared_ptr<Workspace> workspace)
    : program_(program), device_(device), workspace_(std::move(workspace)) {
  add(program.init);
  add(program.steps);
  made_.assign(launches_.size(),
               Diag{code::kInternal, Loc::unknown(), "a library launch without a plan"});
  const size_t machine = std::max(1u, std::thread::hardware_concurrency());
  const size_t count = std::min({launches_.size(), machine, kMostThreads});
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

LibraryPlans::~LibraryPlans() {
  for (std::thread& thread : threads_) thread.join();
}

void LibraryPlans::add(const std::vector<Launch>& launches) {
  for (const Launch& launch : launches)
    if (auto* library = std::get_if<LibraryLaunch>(&launch.kind))
      if (plans_.emplace(key_of(*library), launches_.size()).second) launches_.push_back(library);
}

std::string LibraryPlans::key_of(const LibraryLaunch& launch) const {
  std::string key =
      fmt::format("{} {} {}", launch.routine, launch.scale, fmt::join(launch.epilogue, ","));
  for (const auto& [name, values] : launch.sizes)
    key += fmt::format(" {}={}", name, fmt::join(values, ","));
  for (BufferId id : launch.buffers)
    key += fmt::format(" {}", dtype_name(program_.buffers[static_cast<size_t>(id)].type.dtype));
  return key;
}

void LibraryPlans::work() {
  const Status bound = device_.use();  // contexts are bound to threads
  for (size_t i = next_++; i < launches_.size(); i = next_++)
    made_[i] = bound.ok() ? plan_library(program_, *launches_[i], workspace_) : bound.error();
}

Status LibraryPlans::finish() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  for (const Result<LibraryRun>& plan : made_) LATHE_DO(plan);
  return Ok{};
}

const LibraryRun& LibraryPlans::of(const LibraryLaunch& launch) const {
  return *made_[plans_.at(key_of(launch))];
}

}  // namespace lathe::cuda
