// The thread pool: every chunk once, for any number of threads, callers and nesting.
#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

namespace lathe::cpu {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryChunkOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (int64_t chunks : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(chunks));
    pool.run(chunks, [&](int worker, int64_t chunk) {
      EXPECT_GE(worker, 0);
      EXPECT_LT(worker, GetParam());
      seen[static_cast<size_t>(chunk)].fetch_add(1);
    });
    for (auto& count : seen) EXPECT_EQ(count.load(), 1);
  }
}

TEST_P(ThreadPoolTest, ManyLaunchesFollowEachOther) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(64);  // written by one launch, read by the next, without locks
  for (int launch = 0; launch < 3000; ++launch)
    pool.run(8, [&](int, int64_t chunk) {
      for (int64_t i = 0; i < 8; ++i) ++values[static_cast<size_t>((chunk * 8 + i + launch) % 64)];
    });
  for (int64_t value : values) EXPECT_EQ(value, 3000);
}

TEST_P(ThreadPoolTest, WorkersWakeAfterSleep) {
  ThreadPool pool(GetParam());
  for (int launch = 0; launch < 5; ++launch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int64_t> sum{0};
    pool.run(100, [&](int, int64_t chunk) { sum += chunk; });
    EXPECT_EQ(sum.load(), 4950);
  }
}

TEST_P(ThreadPoolTest, NestedRunsStayOnTheirThread) {
  ThreadPool pool(GetParam());
  std::atomic<int> inner{0};
  pool.run(10, [&](int, int64_t) {
    pool.run(10, [&](int worker, int64_t) {
      EXPECT_EQ(worker, 0);
      ++inner;
    });
  });
  EXPECT_EQ(inner.load(), 100);
}

TEST_P(ThreadPoolTest, CallersOnSeveralThreads) {
  ThreadPool pool(GetParam());
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      for (int launch = 0; launch < 200; ++launch)
        pool.run(5, [&](int, int64_t chunk) { sum += chunk; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 3 * 200 * 10);
}

TEST_P(ThreadPoolTest, SharedPoolsAreOne) {
  auto a = ThreadPool::shared(GetParam()), b = ThreadPool::shared(GetParam());
  EXPECT_EQ(a.get(), b.get());
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace lathe::cpu
