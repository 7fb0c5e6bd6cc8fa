// Memory runs out: at every allocation of a load, its compilation, a run and the end, once or for
// good, an error comes back, nothing is lost, and the next call works. BUILD says what compiles.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/api/failing_calls.h"
#include "tests/api/handle.h"

namespace lathe {
namespace {

constexpr char kOptions[] = R"({"threads": 1, "dims": {}})";
constexpr int64_t kNobody = int64_t{1} << 60;

// How many allocations are tried when not every one is.
constexpr int64_t kTries = 300;

bool tries_all() { return std::getenv("LATHE_EVERY_ALLOCATION") != nullptr; }

struct Case {
  const char* path;
  bool for_good;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.path << (c.for_good ? " for good" : "");
}

class Memory : public testing::TestWithParam<Case> {
 protected:
  // Numbers of the allocations to fail, among `count`.
  static std::vector<int64_t> tried(int64_t count) {
    const int64_t step = tries_all() ? 1 : std::max<int64_t>(1, count / kTries);
    std::vector<int64_t> numbers;
    for (int64_t n = 0; n < count; n += step) numbers.push_back(n);
    return numbers;
  }
};

TEST_P(Memory, RunsOutWhileAModelIsLoaded) {
  const std::string path = GetParam().path;
  const Bytes expected = results_of(path, kOptions);
  int64_t count = 0;
  {
    const FailingCalls none(Call::memory, kNobody);
    Handle handle(path, kOptions);
    count = FailingCalls::num_seen();
  }
  ASSERT_GT(count, 100);
  int64_t num_failed = 0;
  for (const int64_t nth : tried(count)) {
    lathe_model* model = nullptr;
    {
      const FailingCalls failing(Call::memory, nth, GetParam().for_good);
      model = lathe_load(path.c_str(), kOptions);
    }
    if (model != nullptr && lathe_last_status(model) == LATHE_OK) {
      lathe_free(model);
      continue;  // the allocation had a substitute
    }
    ++num_failed;
    EXPECT_NE(lathe_last_status(model), LATHE_INTERNAL) << nth;
    EXPECT_NE(lathe_error(model), nullptr);
    EXPECT_EQ(lathe_num_inputs(model), 0);
    EXPECT_NE(lathe_run(model, nullptr, nullptr), LATHE_OK);
    lathe_free(model);
  }
  EXPECT_GT(num_failed, 0);
  EXPECT_TRUE(results_of(path, kOptions) == expected);
}

// A run that failed is one that never was: what the model mutates has moved no further.
TEST_P(Memory, RunsOutInARunThatIsThenRepeated) {
  Handle handle(GetParam().path, kOptions), twin(GetParam().path, kOptions);
  ASSERT_EQ(handle.error(), "");
  handle.prepare();
  twin.prepare();
  ASSERT_EQ(twin.run(), LATHE_OK);
  int64_t count = 0;
  {
    const FailingCalls none(Call::memory, kNobody);
    ASSERT_EQ(handle.run(), LATHE_OK);
    count = FailingCalls::num_seen();
  }
  for (const int64_t nth : tried(count)) {
    lathe_status status = LATHE_OK;
    {
      const FailingCalls failing(Call::memory, nth, GetParam().for_good);
      status = handle.run();
    }
    if (status == LATHE_OK) {
      ASSERT_EQ(twin.run(), LATHE_OK);  // the allocation had a substitute
    } else {
      EXPECT_EQ(status, LATHE_OUT_OF_MEMORY) << nth << ": " << handle.error();
    }
    ASSERT_EQ(handle.run(), LATHE_OK) << nth;
    ASSERT_EQ(twin.run(), LATHE_OK);
    EXPECT_EQ(handle.error(), "");
    ASSERT_TRUE(handle.results() == twin.results()) << nth;
  }
}

TEST_P(Memory, NothingIsLostWhereItRanOut) {
  const std::string path = GetParam().path;
  const auto fail_at = [&](int64_t nth) {
    lathe_model* model = nullptr;
    {
      const FailingCalls failing(Call::memory, nth, GetParam().for_good);
      model = lathe_load(path.c_str(), kOptions);
    }
    lathe_free(model);
  };
  int64_t count = 0;
  {
    const FailingCalls none(Call::memory, kNobody);
    Handle handle(path, kOptions);
    count = FailingCalls::num_seen();
  }
  const auto numbers = tried(count);
  for (const int64_t nth : numbers) fail_at(nth);  // what is made once is made
  const size_t before = mallinfo2().uordblks;
  for (const int64_t nth : numbers) fail_at(nth);
  const size_t after = mallinfo2().uordblks;
  EXPECT_LT(after, before + 10'000) << numbers.size() << " failed loads";
}

// Sizes that did not bind are as if they had never been asked for.
class MemoryOfSizes : public testing::TestWithParam<bool> {};

TEST_P(MemoryOfSizes, RunsOutAndTheFormerOnesStay) {
  const bool for_good = GetParam();
  const auto load = [] {
    return std::make_unique<Handle>("tests/api/doubled_in_place.lathe",
                                    R"({"threads": 1, "dynamic": true, "dims": {"s0": 8}})");
  };
  const int64_t large = 1000;
  int64_t count = 0;
  {
    const auto handle = load();
    ASSERT_EQ(handle->error(), "");
    const FailingCalls none(Call::memory, kNobody);
    ASSERT_EQ(lathe_bind(handle->get(), &large, 1), LATHE_OK);
    count = FailingCalls::num_seen();
  }
  ASSERT_GT(count, 3);
  int64_t num_failed = 0;
  for (int64_t nth = 0; nth < count; ++nth) {
    const auto handle = load();
    handle->prepare();
    ASSERT_EQ(handle->run(), LATHE_OK);
    const Bytes before = handle->results();
    lathe_status status = LATHE_OK;
    {
      const FailingCalls failing(Call::memory, nth, for_good);
      status = lathe_bind(handle->get(), &large, 1);
    }
    num_failed += status == LATHE_OK ? 0 : 1;
    ASSERT_EQ(lathe_input(handle->get(), 0)->shape[0], status == LATHE_OK ? 1000 : 8) << nth;
    if (status == LATHE_OK) handle->prepare();
    ASSERT_EQ(handle->run(), LATHE_OK) << nth << ": " << handle->error();
    if (status != LATHE_OK) {
      EXPECT_TRUE(handle->results() == before) << nth;
    }
    ASSERT_EQ(lathe_bind(handle->get(), &large, 1), LATHE_OK) << nth << ": " << handle->error();
    EXPECT_EQ(lathe_output(handle->get(), 0)->shape[0], large);
  }
  EXPECT_GT(num_failed, count / 2);
}

INSTANTIATE_TEST_SUITE_P(Once, MemoryOfSizes, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(ForGood, MemoryOfSizes, testing::Values(true));

INSTANTIATE_TEST_SUITE_P(Models, Memory,
                         testing::Values(Case{"tests/fixtures/mutated_buffers.pt2", false},
                                         Case{"tests/fixtures/mutated_buffers.pt2", true},
                                         Case{"tests/fixtures/ffnn.pt2", false}));

}  // namespace
}  // namespace lathe
