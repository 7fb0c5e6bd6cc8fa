// Callers on several threads.
#include <gtest/gtest.h>

#include <memory>
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

// Those of one model that share what it mutates are as one.
TEST(Handles, ShareStateUntilTheLastOne) {
  constexpr char kMutated[] = "tests/fixtures/mutated_buffers.pt2";
  Handle twin(kMutated);
  twin.prepare();
  auto first = std::make_unique<Handle>(kMutated);
  Handle second(kMutated), third(kMutated);
  ASSERT_EQ(lathe_share_state(second.get(), first->get()), LATHE_OK) << second.error();
  ASSERT_EQ(lathe_share_state(third.get(), second.get()), LATHE_OK) << third.error();
  for (Handle* handle : {first.get(), &second, &third}) handle->prepare();
  const auto expect_next = [&](Handle& handle) {
    ASSERT_EQ(handle.run(), LATHE_OK);
    ASSERT_EQ(twin.run(), LATHE_OK);
    EXPECT_TRUE(handle.results() == twin.results());
  };
  expect_next(*first);
  expect_next(second);
  expect_next(third);
  expect_next(*first);
  first.reset();
  expect_next(third);
  expect_next(second);
}

TEST(Handles, ThatShareStateRunByTurns) {
  constexpr char kMutated[] = "tests/fixtures/mutated_buffers.pt2";
  Handle a(kMutated), b(kMutated), twin(kMutated);
  ASSERT_EQ(lathe_share_state(b.get(), a.get()), LATHE_OK);
  for (Handle* handle : {&a, &b, &twin}) handle->prepare();
  const auto work = [](Handle& handle) {
    for (int i = 0; i < 50; ++i) ASSERT_EQ(handle.run(), LATHE_OK);
  };
  std::thread other([&] { work(a); });
  work(b);
  other.join();
  for (int i = 0; i <= 100; ++i) ASSERT_EQ(twin.run(), LATHE_OK);
  ASSERT_EQ(a.run(), LATHE_OK);
  EXPECT_TRUE(a.results() == twin.results());
}

TEST(Handles, OfOtherModelsShareNoState) {
  Handle handle("tests/fixtures/mutated_buffers.pt2"), other(kModel);
  EXPECT_EQ(lathe_share_state(handle.get(), other.get()), LATHE_WRONG_INPUT);
  EXPECT_NE(handle.error().find("is no state of both models"), std::string::npos);
  EXPECT_EQ(lathe_share_state(other.get(), handle.get()), LATHE_OK);  // it has none
  EXPECT_EQ(lathe_share_state(handle.get(), nullptr), LATHE_WRONG_INPUT);
  EXPECT_EQ(lathe_share_state(nullptr, handle.get()), LATHE_WRONG_INPUT);
}

}  // namespace
}  // namespace lathe
