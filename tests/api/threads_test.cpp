// Threads that the system refuses, mappings that it refuses, and fork.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "tests/api/failing_calls.h"
#include "tests/api/handle.h"

namespace lathe {
namespace {

constexpr char kModel[] = "tests/fixtures/bert_tiny.pt2";
constexpr char kSmallModel[] = "tests/fixtures/ffnn.pt2";
constexpr char kThreads[] = R"({"threads": 4})";

TEST(RefusedThreads, AreDoneWithout) {
  const Bytes expected = results_of(kModel, kThreads);
  for (const bool for_good : {false, true})
    for (int64_t nth = 0; nth < 5; ++nth) {
      const FailingCalls failing(Call::thread, nth, for_good);
      EXPECT_TRUE(results_of(kModel, kThreads) == expected) << nth;
    }
}

TEST(RefusedMappings, AreTheUsersError) {
  int64_t count = 0, num_failed = 0;
  {
    const FailingCalls none(Call::mapping, 1 << 30);
    results_of(kSmallModel);
    count = FailingCalls::num_seen();
  }
  for (int64_t nth = 0; nth < count; ++nth) {
    {
      const FailingCalls failing(Call::mapping, nth);
      Handle handle(kSmallModel);
      if (handle.error().empty()) continue;
      ++num_failed;
      EXPECT_NE(handle.error().find("error[too-large]"), std::string::npos) << handle.error();
      EXPECT_NE(handle.status(), LATHE_INTERNAL);
    }
  }
  EXPECT_GT(num_failed, 0);
  results_of(kSmallModel);
}

// Whether a child that does `work` ends by itself and finds it true.
bool holds_in_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that hangs dies
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(WIFSIGNALED(status)) << "signal " << WTERMSIG(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Fork, AChildRunsFreesAndLoads) {
  auto handle = std::make_unique<Handle>(kModel, kThreads);
  handle->prepare();
  ASSERT_EQ(handle->run(), LATHE_OK);
  const Bytes expected = handle->results();
  EXPECT_TRUE(holds_in_child([&] {
    for (int i = 0; i < 10; ++i)
      if (handle->run() != LATHE_OK || handle->results() != expected) return false;
    handle.reset();
    return results_of(kModel, kThreads) == expected;
  }));
  ASSERT_EQ(handle->run(), LATHE_OK);
  EXPECT_TRUE(handle->results() == expected);
}

TEST(Fork, AChildsChildDoesToo) {
  Handle handle(kModel, kThreads);
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK);
  const Bytes expected = handle.results();
  EXPECT_TRUE(holds_in_child([&] {
    Handle own(kModel, kThreads);
    own.prepare();
    return own.run() == LATHE_OK && holds_in_child([&] {
             return handle.run() == LATHE_OK && own.run() == LATHE_OK &&
                    handle.results() == expected && own.results() == expected;
           });
  }));
}

TEST(Fork, WhileAnotherThreadRunsAnotherHandle) {
  Handle handle(kModel, kThreads);
  handle.prepare();
  ASSERT_EQ(handle.run(), LATHE_OK);
  const Bytes expected = handle.results();
  std::atomic<bool> is_done{false};
  std::thread runner([&] {
    Handle other(kModel, kThreads);
    other.prepare();
    while (!is_done) ASSERT_EQ(other.run(), LATHE_OK);
  });
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(
        holds_in_child([&] { return handle.run() == LATHE_OK && handle.results() == expected; }));
  is_done = true;
  runner.join();
}

}  // namespace
}  // namespace lathe
