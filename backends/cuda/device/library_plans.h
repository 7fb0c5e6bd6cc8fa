// The plans of a program's library launches.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/device/libraries.h"
#include "ir/threads/threads.h"

namespace lathe::cuda {

// Made on threads, several at once: what is slow is the library loading itself and compiling some
// of its kernels. Calls that differ in their buffers alone share a plan. The program, of which
// dtypes are read, outlives it.
class LibraryPlans {
 public:
  LibraryPlans(const Program& program, const Device& device, std::shared_ptr<Workspace> workspace)
      : program_(program), device_(device), workspace_(std::move(workspace)) {}
  LibraryPlans(const LibraryPlans&) = delete;

  // Begins with those of these calls, which are of numbers, that have no plan.
  void start(const std::vector<LibraryCall>& calls);
  // Waits for all that was started; the first call's error when any cannot be planned.
  Status finish();
  // Why the library refused the call in the last finish(); "" when it did not.
  std::string refusal(const LibraryCall& call) const;
  // After finish(), of a call that was started.
  std::shared_ptr<const LibraryRun> of(const LibraryCall& call);

  // Forgets those that were asked for longest ago, until there are kMost; how many those were. Who
  // holds one keeps it.
  int64_t trim();
  static constexpr size_t kMost = 512;

 private:
  struct Plan {
    std::shared_ptr<const LibraryRun> run;
    int64_t last_use = 0;
  };
  struct Pending {
    std::string key;
    LibraryCall call;
    Result<LibraryRun> made;
    bool is_refused = false;  // by the library itself
  };
  std::string key_of(const LibraryCall& call) const;
  void work();

  const Program& program_;
  const Device& device_;
  std::shared_ptr<Workspace> workspace_;
  std::unordered_map<std::string, Plan> plans_;            // by what sets them apart
  std::unordered_map<std::string, std::string> refusals_;  // likewise
  int64_t clock_ = 0;
  std::vector<Pending> pending_;
  std::atomic<size_t> next_ = 0;
  Threads threads_;
};

}  // namespace lathe::cuda
