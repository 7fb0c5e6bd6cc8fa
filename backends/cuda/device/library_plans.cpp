// Planning on threads.
#include "backends/cuda/device/library_plans.h"

#include <algorithm>
#include <unordered_set>

#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

constexpr size_t kMostThreads = 8;

}  // namespace

void LibraryPlans::start(const std::vector<LibraryCall>& calls) {
  std::unordered_set<std::string> keys;
  for (const LibraryCall& call : calls) {
    std::string key = key_of(call);
    if (plans_.count(key) != 0 || !keys.insert(key).second) continue;
    pending_.push_back({std::move(key), call,
                        Diag{code::kInternal, Loc::unknown(), "a library launch without a plan"}});
  }
  next_ = 0;
  const auto machine = static_cast<size_t>(Threads::at_once());
  const size_t count = std::min({pending_.size(), machine, kMostThreads});
  for (size_t i = 0; i < count; ++i)
    if (!threads_.start([this] { work(); })) break;
}

std::string LibraryPlans::key_of(const LibraryCall& call) const {
  return print(call, [this](BufferId id) {
    return std::string(dtype_name(program_.buffers[static_cast<size_t>(id)].type.dtype));
  });
}

void LibraryPlans::work() {
  const Status bound = device_.use();  // contexts are bound to threads
  for (size_t i = next_++; i < pending_.size(); i = next_++) {
    Pending& plan = pending_[i];
    plan.made = bound.ok() ? plan_library(program_, plan.call, workspace_) : bound.error();
    plan.is_refused = bound.ok() && !plan.made.ok();
  }
}

Status LibraryPlans::finish() {
  threads_.join();
  work();  // what no thread took
  Status status = Ok{};
  refusals_.clear();
  for (Pending& plan : pending_) {
    if (plan.is_refused) refusals_[plan.key] = plan.made.error().message;
    if (plan.made.ok())
      plans_[plan.key].run = std::make_shared<const LibraryRun>(*std::move(plan.made));
    else if (status.ok())
      status = plan.made.error();
  }
  pending_.clear();
  return status;
}

std::string LibraryPlans::refusal(const LibraryCall& call) const {
  auto found = refusals_.find(key_of(call));
  return found == refusals_.end() ? "" : found->second;
}

std::shared_ptr<const LibraryRun> LibraryPlans::of(const LibraryCall& call) {
  Plan& plan = plans_.at(key_of(call));
  plan.last_use = ++clock_;
  return plan.run;
}

int64_t LibraryPlans::trim() {
  if (plans_.size() <= kMost) return 0;
  std::vector<int64_t> uses;
  for (const auto& [key, plan] : plans_) uses.push_back(plan.last_use);
  const auto last = uses.begin() + static_cast<int64_t>(uses.size() - kMost);
  std::nth_element(uses.begin(), last, uses.end());
  return static_cast<int64_t>(
      std::erase_if(plans_, [&](const auto& entry) { return entry.second.last_use < *last; }));
}

}  // namespace lathe::cuda
