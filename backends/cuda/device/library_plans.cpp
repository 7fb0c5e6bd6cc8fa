// Planning on threads.
#include "backends/cuda/device/library_plans.h"

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
  made_.assign(calls_.size(),
               Diag{code::kInternal, Loc::unknown(), "a library launch without a plan"});
  const auto machine = static_cast<size_t>(Threads::at_once());
  const size_t count = std::min({calls_.size(), machine, kMostThreads});
  for (size_t i = 0; i < count; ++i)
    if (!threads_.start([this] { work(); })) break;
}

void LibraryPlans::add(const std::vector<Launch>& launches) {
  for (const Launch& launch : launches)
    if (auto* library = std::get_if<LibraryLaunch>(&launch.kind))
      if (plans_.emplace(key_of(library->call), calls_.size()).second)
        calls_.push_back(&library->call);
}

std::string LibraryPlans::key_of(const LibraryCall& call) const {
  return print(call, [this](BufferId id) {
    return std::string(dtype_name(program_.buffers[static_cast<size_t>(id)].type.dtype));
  });
}

void LibraryPlans::work() {
  const Status bound = device_.use();  // contexts are bound to threads
  for (size_t i = next_++; i < calls_.size(); i = next_++)
    made_[i] = bound.ok() ? plan_library(program_, *calls_[i], workspace_) : bound.error();
}

Status LibraryPlans::finish() {
  threads_.join();
  work();  // what no thread took
  for (const Result<LibraryRun>& plan : made_) LATHE_DO(plan);
  return Ok{};
}

const LibraryRun& LibraryPlans::of(const LibraryCall& call) const {
  return *made_[plans_.at(key_of(call))];
}

}  // namespace lathe::cuda
