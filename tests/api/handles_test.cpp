// Callers on several threads.
#include <gtest/gtest.h>

#include <thread>

#include "tests/api/handle.h"

namespace lathe {
namespace {

constexpr char kModel[] = "tests/fixtures/bert_tiny.pt2";
constexpr char kThreads[] = R"({"threads": 4})";

TEST(Handles, RunOnThreadsOfTheirOwnAtOnce) {
  const Bytes expected = results_of(kModel, kThreads);
  const auto work = [&] {
    for (int load = 0; load < 2; ++load) {
      Handle handle(kModel, kThreads);
      ASSERT_EQ(handle.error(), "");
      handle.prepare();
      for (int i = 0; i < 20; ++i) ASSERT_EQ(handle.run(), LATHE_OK);
      EXPECT_TRUE(handle.results() == expected);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

TEST(Handles, WanderFromThreadToThread) {
  const Bytes expected = results_of(kModel, kThreads);
  Handle handle(kModel, kThreads);
  handle.prepare();
  for (int i = 0; i < 4; ++i) {
    std::thread([&] { ASSERT_EQ(handle.run(), LATHE_OK); }).join();
    EXPECT_TRUE(handle.results() == expected);
  }
}

}  // namespace
}  // namespace lathe
