// Splitting of memory indices into what lanes share and what each adds.
#include "ir/loop/address.h"

#include <gtest/gtest.h>

#include "ir/loop/pool.h"

namespace lathe::loop {
namespace {

using Offsets = std::vector<int64_t>;

class AddressTest : public ::testing::Test {
 protected:
  AddressTest() {
    kernel.pool = std::make_shared<Pool>();
    i = pool().var(kernel.add_var({.name = "i", .max = 9}));
    gathered = pool().load(kernel.add_buffer({"x", DType::i64, 100}), i, DType::i64, 4);
  }
  Pool& pool() { return *kernel.pool; }

  Kernel kernel;
  Expr i, gathered;
};

TEST_F(AddressTest, ScalarsHaveNoLanes) {
  LaneIndex index = split_lanes(i * pool().integer(3) + pool().integer(7));
  EXPECT_EQ(index.base.constant, 7);
  ASSERT_EQ(index.base.terms.size(), 1u);
  EXPECT_EQ(index.base.terms[0].second, 3);
  EXPECT_TRUE(index.lanes.empty());
}

TEST_F(AddressTest, ScaledRampsBecomeOffsets) {
  Expr two = splat(pool().integer(2), 4);
  LaneIndex index = split_lanes(pool().ramp(i, 5, 4) * two + splat(i + pool().integer(1), 4));
  EXPECT_EQ(index.lanes, (Offsets{0, 10, 20, 30}));
  EXPECT_EQ(index.base.constant, 1);
  ASSERT_EQ(index.base.terms.size(), 1u);
  EXPECT_EQ(index.base.terms[0].second, 3);
  EXPECT_TRUE(index.vectors.empty());
}

TEST_F(AddressTest, DifferencesCancel) {
  LaneIndex index;
  index.lanes.assign(4, 0);
  split_lanes(pool().ramp(i, 1, 4), 1, index);
  split_lanes(splat(i, 4), -1, index);
  EXPECT_TRUE(index.base.terms.empty());
  EXPECT_EQ(index.lanes, (Offsets{0, 1, 2, 3}));
}

TEST_F(AddressTest, OtherVectorsAreKeptWithTheirFactor) {
  LaneIndex index = split_lanes(pool().ramp(i, 1, 4) - gathered * splat(pool().integer(6), 4));
  ASSERT_EQ(index.vectors.size(), 1u);
  EXPECT_EQ(index.vectors[0].first, gathered);
  EXPECT_EQ(index.vectors[0].second, -6);
}

TEST(LaneStride, IsOfEvenLanesFromZero) {
  EXPECT_EQ(lane_stride({0, 3, 6}), 3);
  EXPECT_EQ(lane_stride({0, 0}), 0);
  EXPECT_EQ(lane_stride({1, 2}), std::nullopt);
  EXPECT_EQ(lane_stride({0, 1, 3}), std::nullopt);
}

}  // namespace
}  // namespace lathe::loop
