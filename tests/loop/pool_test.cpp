// Interning, and what the builders fold and refuse to fold.
#include "ir/loop/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lathe::loop {
namespace {

class PoolTest : public ::testing::Test {
 protected:
  double value(Expr e) { return as_float(e) ? as_float(e)->value : std::nan("1"); }

  Pool pool;
  Expr i = pool.var({0});
  Expr j = pool.var({1});
  Expr x = pool.var({2}, DType::f32);
  Expr v = pool.var({3}, DType::f32, 8);
};

TEST_F(PoolTest, EqualExpressionsAreOnePointer) {
  EXPECT_EQ(i * 4 + j, i * 4 + j);
  EXPECT_NE(i * 4 + j, i * 4 - j);
  EXPECT_NE(pool.integer(1), pool.integer(1, DType::i32));
  EXPECT_NE(pool.number(0.0, DType::f32), pool.number(-0.0, DType::f32));
  EXPECT_EQ(pool.number(NAN, DType::f32), pool.number(NAN, DType::f32));
  EXPECT_EQ(pool.load({0}, i, DType::f32), pool.load({0}, i, DType::f32));
  EXPECT_NE(pool.load({0}, i, DType::f32), pool.load({0}, i, DType::f32, 8));
}

TEST_F(PoolTest, IdsGrowFromOperandsToUsers) {
  Expr sum = i + j;
  EXPECT_LT(i->id, sum->id);
  EXPECT_LT(j->id, sum->id);
}

TEST_F(PoolTest, IntegersFoldAndWrap) {
  EXPECT_EQ(pool.integer(200, DType::u8) + pool.integer(100, DType::u8),
            pool.integer(44, DType::u8));
  EXPECT_EQ(floor_div(pool.integer(-7), pool.integer(2)), pool.integer(-4));
  EXPECT_EQ(mod(pool.integer(-7), pool.integer(2)), pool.integer(1));
  EXPECT_EQ(pool.integer(-7) / pool.integer(2), pool.integer(-3));
  EXPECT_EQ(floor_div(i, pool.integer(0)), pool.integer(0));
  EXPECT_EQ(mod(i, pool.integer(0)), pool.integer(0));
  EXPECT_EQ(pool.integer(INT64_MIN) / pool.integer(-1), pool.integer(INT64_MIN));
  EXPECT_EQ(floor_div(pool.integer(INT64_MIN), pool.integer(-1)), pool.integer(INT64_MIN));
}

TEST_F(PoolTest, IntegerIdentities) {
  EXPECT_EQ(i + 0, i);
  EXPECT_EQ(i * 1, i);
  EXPECT_EQ(i * 0, pool.integer(0));
  EXPECT_EQ(i - i, pool.integer(0));
  EXPECT_EQ((i + 2) + 3, i + 5);
  EXPECT_EQ((i - 2) + 2, i);
  EXPECT_EQ((i * 2) * 3, i * 6);
  EXPECT_EQ(pool.integer(2) + i, i + 2) << "constants go right";
  EXPECT_EQ(mod(i, pool.integer(1)), pool.integer(0));
}

TEST_F(PoolTest, FloatsFoldInTheirOwnPrecision) {
  Expr third = pool.number(1, DType::f32) / 3;
  EXPECT_EQ(value(third), static_cast<double>(1.0f / 3.0f));
  Expr a = pool.number(0.1, DType::f32);
  EXPECT_EQ(value(fma(a, a, a)), static_cast<double>(std::fma(0.1f, 0.1f, 0.1f)));
  EXPECT_EQ(value(pool.number(1e-300, DType::f32)), 0);
}

TEST_F(PoolTest, FloatIdentitiesKeepEveryBit) {
  EXPECT_NE(x + 0, x) << "-0 + 0 is 0";
  EXPECT_EQ(x - 0, x);
  EXPECT_EQ(x + -0.0, x);
  EXPECT_EQ(x * 1, x);
  EXPECT_EQ(x / 1, x);
  EXPECT_NE(x * 0, pool.number(0, DType::f32)) << "NaN * 0 is NaN";
  EXPECT_NE(x - x, pool.number(0, DType::f32));
  EXPECT_EQ(as_int(eq(x, x)), nullptr) << "NaN differs from itself";
}

TEST_F(PoolTest, TranscendentalFunctionsDoNotFold) {
  EXPECT_EQ(as_float(exp(pool.number(1, DType::f32))), nullptr);
  EXPECT_EQ(value(sqrt(pool.number(2, DType::f32))), static_cast<double>(std::sqrt(2.0f)));
}

TEST_F(PoolTest, ComparisonsBuildAsLess) {
  EXPECT_EQ(binary(BinaryOp::gt, i, j), lt(j, i));
  EXPECT_EQ(binary(BinaryOp::ge, i, j), le(j, i));
  EXPECT_EQ(logical_not(lt(i, j)), le(j, i));
  EXPECT_NE(logical_not(lt(x, x + 1)), le(x + 1, x)) << "both are false on NaN";
  EXPECT_EQ(logical_not(logical_not(lt(x, x + 1))), lt(x, x + 1));
}

TEST_F(PoolTest, SelectOfAConstant) {
  EXPECT_EQ(select(pool.boolean(true), i, j), i);
  EXPECT_EQ(select(lt(i, j), i, i), i);
  EXPECT_EQ(select(logical_and(lt(i, j), pool.boolean(false)), i, j), j);
}

TEST_F(PoolTest, ScalarsSplatToTheOtherOperand) {
  Expr sum = x + v;
  EXPECT_EQ(sum->lanes, 8);
  EXPECT_EQ(sum, splat(x, 8) + v);
  EXPECT_EQ(fma(x, x, v)->lanes, 8);
  EXPECT_EQ(select(lt(v, v + 1), x, x + 1)->lanes, 8);
  EXPECT_EQ(splat(splat(x, 8), 8), splat(x, 8));
  EXPECT_EQ(splat(x, 8) * splat(x, 8), splat(x * x, 8));
}

TEST_F(PoolTest, MixedDtypesTakeTheFirst) {
  EXPECT_EQ((x + i)->dtype, DType::f32);
  EXPECT_EQ((i + x)->dtype, DType::i64);
  EXPECT_EQ(sqrt(i)->dtype, DType::f32);
}

TEST_F(PoolTest, RampsStayRamps) {
  Expr ramp = pool.ramp(i, 1, 8);
  EXPECT_EQ(ramp * 4 + j, pool.ramp(i * 4 + j, 4, 8));
  EXPECT_EQ(ramp - ramp, splat(pool.integer(0), 8));
  EXPECT_EQ(pool.ramp(i, 0, 8), splat(i, 8));
  EXPECT_EQ(pool.load({0}, ramp, DType::f32), pool.load({0}, i, DType::f32, 8))
      << "consecutive elements have a scalar index";
  EXPECT_EQ(pool.load({0}, splat(i, 8), DType::f32), splat(pool.load({0}, i, DType::f32), 8));
}

TEST_F(PoolTest, MasksThatAreKnownVanish) {
  EXPECT_EQ(pool.load({0}, i, DType::f32, 8, splat(pool.boolean(true), 8)),
            pool.load({0}, i, DType::f32, 8));
  EXPECT_EQ(pool.load({0}, i, DType::f32, 1, pool.boolean(false)), pool.number(0, DType::f32));
}

TEST_F(PoolTest, CastsAndBitcastsFold) {
  EXPECT_EQ(cast(pool.number(-2.7, DType::f32), DType::i64), pool.integer(-2));
  EXPECT_EQ(cast(pool.integer(300), DType::u8), pool.integer(44, DType::u8));
  EXPECT_EQ(bitcast(pool.number(1, DType::f32), DType::i32), pool.integer(0x3f800000, DType::i32));
  EXPECT_EQ(bitcast(bitcast(x, DType::i32), DType::f32), x);
  EXPECT_EQ(cast(i, DType::b8), ne(i, pool.integer(0)));
}

TEST_F(PoolTest, IdentitiesOfReductions) {
  EXPECT_EQ(pool.number(identity(ReduceOp::min, DType::i64), DType::i64), pool.integer(INT64_MAX));
  EXPECT_EQ(pool.number(identity(ReduceOp::max, DType::i64), DType::i64), pool.integer(INT64_MIN));
  EXPECT_EQ(identity(ReduceOp::max, DType::u8), 0);
  EXPECT_EQ(identity(ReduceOp::min, DType::i8), 127);
  EXPECT_EQ(identity(ReduceOp::min, DType::b8), 1);
  EXPECT_EQ(identity(ReduceOp::max, DType::f32), -std::numeric_limits<double>::infinity());
}

TEST_F(PoolTest, RewriteRebuildsThroughTheBuilders) {
  Expr e = select(lt(i, pool.integer(4)), i * 2 + j, j);
  Expr at_three = rewrite(e, [&](Expr n) { return n == i ? pool.integer(3) : Expr(); });
  EXPECT_EQ(at_three, j + 6);
}

TEST_F(PoolTest, LongChainsDoNotOverflowTheStack) {
  Expr sum = x;
  for (int n = 0; n < 100000; ++n) sum = exp(sum);
  int count = 0;
  for_each(sum, [&](Expr) { ++count; });
  EXPECT_EQ(count, 100001);
  Expr other = rewrite(sum, [&](Expr n) { return n == x ? x + 1 : Expr(); });
  EXPECT_NE(other, sum);
}

}  // namespace
}  // namespace lathe::loop
