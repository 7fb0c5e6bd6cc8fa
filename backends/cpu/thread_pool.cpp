// A job opens a gate, workers enter while it is open, and the caller, having run out of chunks,
// closes it and waits for those inside. A worker that sleeps or lost its core therefore costs
// nothing but its help. Workers look for the next job for 200 us before they sleep: kernels of
// one program follow each other within that time, and so do calls from Python.
#include "backends/cpu/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

namespace lathe::cpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSpin{200};
constexpr uint64_t kJob = uint64_t{1} << 32;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// How many forks lie between the process that loaded this code and this one. Cheaper to ask for
// than the process's number, which takes a call of the system.
std::atomic<int> num_forks{0};

std::mutex pools_mutex;

// False when there is no memory for it.
bool watch_forks() {
  // A child gets the mutex unlocked, whatever other threads of its parent were doing.
  static const auto lock = [] { pools_mutex.lock(); };
  static const auto unlock = [] { pools_mutex.unlock(); };
  static const auto unlock_in_child = [] {
    num_forks.fetch_add(1, std::memory_order_relaxed);
    pools_mutex.unlock();
  };
  static const bool is_watching = pthread_atfork(lock, unlock, unlock_in_child) == 0;
  return is_watching;
}

}  // namespace

std::shared_ptr<ThreadPool> ThreadPool::shared(int threads) {
  static std::map<int, std::weak_ptr<ThreadPool>> pools;
  std::lock_guard lock(pools_mutex);
  std::weak_ptr<ThreadPool>& known = pools[threads];
  std::shared_ptr<ThreadPool> pool = known.lock();
  if (!pool || pool->is_of_parent()) known = pool = std::make_shared<ThreadPool>(threads);
  return pool;
}

ThreadPool::ThreadPool(int threads) : shares_(static_cast<size_t>(std::max(threads, 1))) {
  num_forks_ = num_forks.load(std::memory_order_relaxed);
  if (!watch_forks()) return;
  for (int worker = 1; worker < threads; ++worker)
    if (!workers_.start([this, worker] { worker_loop(worker); })) break;
}

ThreadPool::~ThreadPool() {
  if (is_of_parent()) workers_.forget();
  is_quitting_.store(true);
  signal_.fetch_add(1);
  signal_.notify_all();
}

bool ThreadPool::is_of_parent() const {
  return num_forks_ != num_forks.load(std::memory_order_relaxed);
}

void ThreadPool::run(int64_t num_chunks, const Work& work) {
  if (num_chunks <= 1 || workers_.size() == 0 || is_of_parent() || is_busy_.exchange(true)) {
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) work(0, chunk);
    return;
  }
  work_ = &work;
  auto count = static_cast<int64_t>(shares_.size());
  for (int64_t i = 0; i < count; ++i) {
    Share& share = shares_[static_cast<size_t>(i)];
    share.next.store(num_chunks * i / count, std::memory_order_relaxed);
    share.end = num_chunks * (i + 1) / count;
  }
  gate_.fetch_add(kJob);  // opens
  signal_.fetch_add(1);
  signal_.notify_all();
  drain(0);
  gate_.fetch_add(kJob);  // closes
  for (int spins = 0; (gate_.load(std::memory_order_acquire) & (kJob - 1)) != 0; ++spins) {
    if (spins < 10'000)
      pause();
    else
      std::this_thread::yield();  // a worker lost its core in the middle of a chunk
  }
  is_busy_.store(false);
}

void ThreadPool::drain(int worker) {
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[(static_cast<size_t>(worker) + i) % shares_.size()];
    for (int64_t chunk; (chunk = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;)
      (*work_)(worker, chunk);
  }
}

// Enters the open job that this worker has not worked for, if there is one.
bool ThreadPool::enter(uint32_t& last_job) {
  uint64_t gate = gate_.load(std::memory_order_acquire);
  for (;;) {
    auto job = static_cast<uint32_t>(gate >> 32);
    if (job % 2 == 0 || job == last_job) return false;
    if (gate_.compare_exchange_weak(gate, gate + 1)) {
      last_job = job;
      return true;
    }
  }
}

void ThreadPool::worker_loop(int worker) {
  uint32_t last_job = 0;
  for (;;) {
    // Before the question: whoever quits changes the signal after saying so, and a change that was
    // seen already wakes nobody.
    int signal = signal_.load();
    if (is_quitting_.load()) return;
    if (enter(last_job)) {
      drain(worker);
      gate_.fetch_sub(1);
      continue;
    }
    Clock::time_point end = Clock::now() + kSpin;
    bool is_idle = true;
    while (is_idle && Clock::now() < end)
      for (int i = 0; i < 16 && is_idle; ++i) {
        pause();
        is_idle = signal_.load(std::memory_order_relaxed) == signal;
      }
    if (is_idle) signal_.wait(signal);
  }
}

}  // namespace lathe::cpu
