// The plans of a program's library launches.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/cuda/device/libraries.h"
#include "ir/threads/threads.h"

namespace lathe::cuda {

// Made on threads of its own from the constructor on, several at once: what is slow is the library
// loading itself and compiling some of its kernels. Launches that differ in their buffers alone
// share a plan. The program outlives it.
class LibraryPlans {
 public:
  LibraryPlans(const Program& program, const Device& device, std::shared_ptr<Workspace> workspace);
  LibraryPlans(const LibraryPlans&) = delete;

  // Waits for all; the first launch's error when any cannot be planned.
  Status finish();
  // After finish().
  const LibraryRun& of(const LibraryCall& call) const;

 private:
  void add(const std::vector<Launch>& launches);
  std::string key_of(const LibraryCall& call) const;
  void work();

  const Program& program_;
  const Device& device_;
  std::shared_ptr<Workspace> workspace_;
  std::vector<const LibraryCall*> calls_;          // one for each plan
  std::unordered_map<std::string, size_t> plans_;  // by what sets them apart
  std::vector<Result<LibraryRun>> made_;
  std::atomic<size_t> next_ = 0;
  Threads threads_;
};

}  // namespace lathe::cuda
