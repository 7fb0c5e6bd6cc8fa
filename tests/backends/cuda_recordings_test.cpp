// Which calls of a program are recorded, by where their outputs lie.
#include <gtest/gtest.h>

#include "backends/cuda/device/recordings.h"

namespace lathe::cuda {
namespace {

using Advice = Recordings::Advice;

CUgraphExec handle(size_t i) { return reinterpret_cast<CUgraphExec>(16 * (i + 1)); }

TEST(CudaRecordings, PlacesThatComeAgainAreRecorded) {
  Recordings recordings;
  EXPECT_EQ(recordings.ask({1, 2}), Advice::run);
  EXPECT_EQ(recordings.ask({3, 2}), Advice::run) << "one place differs";
  EXPECT_EQ(recordings.ask({1, 2}), Advice::record);
  EXPECT_EQ(recordings.keep({1, 2}, handle(0)), nullptr);
  EXPECT_EQ(recordings.ask({1, 2}), Advice::replay);
  EXPECT_EQ(recordings.find({1, 2}), handle(0));
  EXPECT_EQ(recordings.find({3, 2}), nullptr);
}

TEST(CudaRecordings, WhoAlwaysBringsOthersIsStaged) {
  Recordings recordings;
  for (CUdeviceptr place = 0; place < Recordings::kMostStrangers; ++place)
    EXPECT_EQ(recordings.ask({place}), Advice::run);
  EXPECT_EQ(recordings.ask({100}), Advice::stage);
  EXPECT_EQ(recordings.ask({101}), Advice::stage);
  EXPECT_EQ(recordings.ask({100}), Advice::record) << "until one comes again";
  EXPECT_EQ(recordings.ask({102}), Advice::run);
}

TEST(CudaRecordings, TheOneThatWasUsedLongestAgoMakesRoom) {
  Recordings recordings;
  for (size_t i = 0; i < Recordings::kMost; ++i)
    EXPECT_EQ(recordings.keep({i}, handle(i)), nullptr);
  EXPECT_EQ(recordings.ask({0}), Advice::replay);
  EXPECT_EQ(recordings.keep({50}, handle(50)), handle(1));
  EXPECT_EQ(recordings.take().size(), Recordings::kMost);
  EXPECT_TRUE(recordings.empty());
}

}  // namespace
}  // namespace lathe::cuda
