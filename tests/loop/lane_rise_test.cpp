// How far apart lanes lie that do not fall.
#include "ir/loop/lane_rise.h"

#include <gtest/gtest.h>

#include "ir/loop/pool.h"

namespace lathe::loop {
namespace {

class LaneRise : public ::testing::Test {
 protected:
  LaneRise() {
    kernel.pool = std::make_shared<Pool>();
    i = pool().var(kernel.add_var({.name = "i", .max = 99}));
    ramp = pool().ramp(i, 1, 8);
  }
  Pool& pool() { return *kernel.pool; }
  Expr whole(int64_t value) { return splat(pool().integer(value), 8); }
  std::optional<double> rise(Expr e, int lanes = 8) {
    Ranges ranges(kernel);
    return lane_rise(e, lanes, ranges);
  }

  Kernel kernel;
  Expr i, ramp;
};

TEST_F(LaneRise, OfARampIsItsLength) {
  EXPECT_EQ(rise(ramp), 7);
  EXPECT_EQ(rise(pool().ramp(i, 3, 8)), 21);
  EXPECT_EQ(rise(pool().ramp(i, 3, 8), 4), 9);
}

TEST_F(LaneRise, OfAResampledIndexFollowsItsStep) {
  const Expr at =
      max((cast(ramp, DType::f32) + 0.5) * 0.5 - 0.5, splat(pool().number(0, DType::f32), 8));
  const Expr index = min(max(cast(at, DType::i64), whole(0)), whole(27));
  ASSERT_TRUE(rise(at));
  EXPECT_NEAR(*rise(at), 3.5, 1e-3);
  EXPECT_EQ(rise(index), 4);
  EXPECT_EQ(rise(min(index + whole(1), whole(27))), 4);
  EXPECT_EQ(rise(floor_div(ramp, whole(2))), 4);
}

TEST_F(LaneRise, IsUnknownOfLanesThatMayFall) {
  EXPECT_FALSE(rise(pool().ramp(i, -1, 8)));
  EXPECT_FALSE(rise(whole(5) - ramp));
  EXPECT_FALSE(rise(ramp * whole(-2)));
  EXPECT_FALSE(rise(mod(ramp, whole(3))));
  EXPECT_FALSE(rise(ramp * ramp));
  const BufferRef x = kernel.add_buffer({"x", DType::i64, 100});
  EXPECT_FALSE(rise(pool().load(x, i, DType::i64, 8)));
}

TEST_F(LaneRise, IsUnknownWhereFloatsLoseWholeNumbers) {
  const Expr far = pool().ramp(pool().var(kernel.add_var({.name = "far", .max = 1 << 25})), 1, 8);
  EXPECT_FALSE(rise(cast(cast(far, DType::f32) * 0.5, DType::i64)));
  EXPECT_FALSE(rise(cast(ramp, DType::f16) + 0.5));
  EXPECT_FALSE(rise(cast(ramp, DType::f32) * 1e30));
}

}  // namespace
}  // namespace lathe::loop
