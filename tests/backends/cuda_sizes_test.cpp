// Sizes of a program on a GPU, on a driver that only counts: what is kept of them, what has to go
// when others come, and that whatever fails leaves sizes that run.
#include <gtest/gtest.h>

#include "backends/cuda/device/backend.h"
#include "ir/program/text.h"
#include "ir/support/diag_codes.h"
#include "tests/backends/fake_cuda/load.h"

namespace lathe {
namespace {

// The second kernel takes a number that outgrows 32 bits before any buffer does.
constexpr char kProgram[] = R"(program @main(%0) -> (%2) {
  dim s0 in [0, MOST] hint 8
  %0 = input "x": f32[s0], 4*s0 bytes
  %1 = temporary "t": f32[s0], 4*s0 bytes
  %2 = output "y": f32[s0], 4*s0 bytes
  steps arena 0 {
    kernel @copy_0(%0, %1) sizes (s0, 1)
    kernel @copy_0(%1, %2) sizes (s0, 1048576*s0)
  }
}

kernel @copy_0(%x: f32[n0], %y: f32[n0] out) {
  dim %n0 in [0, 4611686018427387903]
  dim %n1 in [0, 4611686018427387903]
  parallel %i in 0..%n0 {
    store %y[%i] = load %x[%i] * f32(%n1)
  }
})";

class CudaSizes : public testing::TestWithParam<bool> {
 protected:
  CudaSizes() {
    fake().failing_call = -1;
    EXPECT_TRUE(check_cuda().ok());
  }

  std::unique_ptr<Executable> compile(const std::string& most = "inf") {
    std::string text = kProgram;
    text.replace(text.find("MOST"), 4, most);
    LocTable locs;
    auto program = parse_program(text, locs);
    EXPECT_TRUE(program.ok()) << render(program.error(), locs);
    auto backend = make_cuda_backend("");
    EXPECT_TRUE(backend.ok());
    auto made = (*backend)->compile(*program, {.reduce_overhead = GetParam()});
    EXPECT_TRUE(made.ok()) << made.error().message;
    return *std::move(made);
  }

  // "no error", or what it says.
  static std::string bind(Executable& executable, int64_t size) {
    return message(executable.bind(std::vector<int64_t>{size}));
  }
  static std::string run(Executable& executable, int64_t size) {
    std::vector<std::byte> x(static_cast<size_t>(4 * size)), y(x.size());
    const BufferView in{x.data(), x.size()}, out{y.data(), y.size()};
    return message(executable.run({&in, 1}, {&out, 1}));
  }
  static std::string at(Executable& executable, int64_t size) {
    const std::string bound = bind(executable, size);
    return bound == kFine ? run(executable, size) : bound;
  }
  static std::string message(const Status& status) {
    return status.ok() ? kFine : status.error().message;
  }
  static constexpr const char* kFine = "no error";
};

TEST_P(CudaSizes, MustBeBoundBeforeARun) {
  auto executable = compile();
  EXPECT_EQ(run(*executable, 8), "program 'main' has symbolic sizes, which are not bound yet");
}

TEST_P(CudaSizes, StayAsTheyWereWhenOthersAreForbidden) {
  auto executable = compile("1000");
  EXPECT_EQ(at(*executable, 600), kFine);
  EXPECT_EQ(bind(*executable, 1001), "input 'x' must have 0 to 1000 in dim 0 (s0), got 1001");
  EXPECT_EQ(run(*executable, 600), kFine);
  EXPECT_EQ(run(*executable, 601), "input 0 'x' of program 'main' has 2404 bytes, expected 2400");
}

TEST_P(CudaSizes, SayHowManyBlocksThereAre) {
  auto executable = compile();
  for (int64_t size : {1, 255, 256, 257, 5000, 3}) {
    EXPECT_EQ(at(*executable, size), kFine);
    EXPECT_EQ(fake().last_grid, (size + 255) / 256) << size;
  }
  fake().launches = 0;
  EXPECT_EQ(at(*executable, 0), kFine);
  EXPECT_EQ(fake().launches, GetParam() ? 1 : 0) << "the replay of a recording of nothing";
}

TEST_P(CudaSizes, ThatWereSeenAskTheDriverForNothing) {
  auto executable = compile();
  EXPECT_EQ(at(*executable, 700), kFine);
  EXPECT_EQ(at(*executable, 300), kFine);
  fake().calls = 0;
  const int handles = fake().live_handles;
  EXPECT_EQ(bind(*executable, 700), kFine);
  EXPECT_EQ(bind(*executable, 700), kFine);
  EXPECT_EQ(bind(*executable, 300), kFine);
  EXPECT_EQ(fake().calls, 0);
  EXPECT_EQ(run(*executable, 300), kFine);
  EXPECT_EQ(fake().live_handles, handles) << "a recording is kept";
}

TEST_P(CudaSizes, ThatNeedMoreMemoryDropRecordingsAndSayWhy) {
  auto executable = compile();
  EXPECT_EQ(at(*executable, 100), kFine);
  EXPECT_EQ(at(*executable, 50), kFine);
  EXPECT_EQ(executable->stats().drops.size(), 0u);
  EXPECT_EQ(at(*executable, 4000), kFine);
  EXPECT_EQ(at(*executable, 100), kFine);
  const std::map<std::string, int64_t> expected = {{"a recording: the arena grew", 2}};
  EXPECT_EQ(executable->stats().drops, GetParam() ? expected : decltype(expected){});
  EXPECT_EQ(executable->stats().arena_bytes, 448);
}

TEST_P(CudaSizes, ThatRiseOneByOneMoveMemoryAFewTimes) {
  auto executable = compile();
  int moves = 0;
  for (int64_t size = 1; size <= 400; ++size) {
    const size_t before = fake().live_bytes;
    ASSERT_EQ(bind(*executable, size), kFine);
    moves += fake().live_bytes != before;
  }
  EXPECT_GT(moves, 1);
  EXPECT_LT(moves, 30);
}

TEST_P(CudaSizes, OfAKnownEndMoveNothing) {
  auto executable = compile("5000");
  const size_t bytes = fake().live_bytes;
  for (int64_t size : {10, 5000, 11, 4999}) ASSERT_EQ(at(*executable, size), kFine);
  EXPECT_TRUE(executable->stats().drops.empty());
  if (GetParam()) EXPECT_EQ(fake().live_bytes, bytes);
}

TEST_P(CudaSizes, AreKeptInALimitedNumber) {
  auto executable = compile("100");
  const int handles = fake().live_handles;
  for (int64_t size = 1; size <= 80; ++size) ASSERT_EQ(at(*executable, size), kFine);
  const std::map<std::string, int64_t> expected = {
      {"a recording: there were more than 32 sizes", 48}};
  EXPECT_EQ(executable->stats().drops, GetParam() ? expected : decltype(expected){});
  EXPECT_EQ(fake().live_handles - handles, GetParam() ? 32 : 0);
  EXPECT_EQ(at(*executable, 1), kFine) << "it is made anew";
}

TEST_P(CudaSizes, BeyondIntsGetKernelsOfTheirOwn) {
  auto executable = compile();
  EXPECT_EQ(at(*executable, 1000), kFine);
  int handles = fake().live_handles;
  EXPECT_EQ(bind(*executable, 3000), kFine);
  handles = fake().live_handles - (GetParam() ? handles - 1 : handles);
  EXPECT_EQ(handles, 1) << "a second module, once, beside the recording that went";
  EXPECT_EQ(run(*executable, 3000), kFine);
  EXPECT_EQ(at(*executable, 1000), kFine);
  handles = fake().live_handles;
  EXPECT_EQ(bind(*executable, 2500), kFine);
  EXPECT_EQ(fake().live_handles, handles);
}

// Every driver call of a bind and the run behind it fails in turn.
TEST_P(CudaSizes, ThatFailToBindCanBeBoundAgain) {
  constexpr int kMostCalls = 40;
  const size_t bytes = fake().live_bytes;
  int num_failures = 0;
  for (int failing = 1; failing <= kMostCalls; ++failing) {
    auto executable = compile();
    ASSERT_EQ(at(*executable, 100), kFine);
    fake().calls = 0;
    fake().failing_call = failing;
    const std::string first = at(*executable, 3000);
    fake().failing_call = -1;
    num_failures += first != kFine;
    EXPECT_EQ(at(*executable, 100), kFine) << failing << ": " << first;
    EXPECT_EQ(at(*executable, 3000), kFine) << failing << ": " << first;
    EXPECT_EQ(at(*executable, 100), kFine) << failing << ": " << first;
  }
  EXPECT_GT(num_failures, 3);
  EXPECT_LT(num_failures, kMostCalls);
  EXPECT_EQ(fake().live_bytes, bytes);
}

INSTANTIATE_TEST_SUITE_P(Modes, CudaSizes, testing::Bool(), [](const auto& mode) {
  return mode.param ? "ReduceOverhead" : "Default";
});

}  // namespace
}  // namespace lathe
