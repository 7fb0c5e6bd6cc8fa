// A pool of worker threads for parallel loops: neighbouring chunks stay on one worker, idle workers
// take over from busy ones, and nobody waits for workers that are late.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ir/threads/threads.h"

namespace lathe::cpu {

class ThreadPool {
 public:
  // The process's pool of this many threads, the caller's among them. One thread makes none.
  static std::shared_ptr<ThreadPool> shared(int threads);

  // Of fewer threads when the system refuses some.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls work(worker, chunk) for every chunk in [0, num_chunks), and returns when all are done.
  // Each worker starts with an equal share of consecutive chunks, in order (what one prefetches, it
  // also uses). The calling thread is worker 0, others are 1 .. num_threads()-1. When another
  // caller uses the pool at this moment (or work calls run again), the caller does all chunks
  // itself as worker 0; so it does in a child of fork, which has the pool but none of its workers.
  using Work = std::function<void(int worker, int64_t chunk)>;
  void run(int64_t num_chunks, const Work& work);

 private:
  // The chunks of one worker that nobody has taken yet.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void worker_loop(int worker);
  void drain(int worker);
  bool enter(uint32_t& last_job);
  bool is_of_parent() const;

  std::atomic<bool> is_busy_{false};  // a caller is in run
  const Work* work_ = nullptr;
  std::vector<Share> shares_;
  // High half: number of the job, odd while it takes workers. Low half: workers inside it.
  alignas(64) std::atomic<uint64_t> gate_{0};
  alignas(64) std::atomic<int> signal_{0};  // counts jobs; sleeping workers wait for it to change
  std::atomic<bool> is_quitting_{false};
  int num_forks_ = 0;  // when the workers were started
  Threads workers_;    // they read what stands above, which therefore goes after them
};

}  // namespace lathe::cpu
