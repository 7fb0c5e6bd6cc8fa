// The cost model: trip counts, cycles of a core, bytes from behind a cache, and prices of launches.
#include <gtest/gtest.h>

#include "ir/cost/cycles.h"
#include "ir/cost/price.h"
#include "ir/cost/reuse.h"
#include "ir/cost/trip_counts.h"
#include "ir/loop/text.h"

namespace lathe {
namespace {

loop::Kernel kernel_of(const std::string& text) {
  LocTable locs;
  Result<loop::Kernel> kernel = loop::parse_kernel(text, locs);
  EXPECT_TRUE(kernel.ok()) << (kernel.ok() ? "" : render(kernel.error(), locs));
  return kernel.ok() ? *std::move(kernel) : loop::Kernel();
}

double cycles(const std::string& text) {
  return count_cycles(kernel_of(text), *find_target("avx512"));
}

Traffic traffic(const std::string& text, int64_t capacity) {
  const int64_t capacities[] = {capacity};
  return count_traffic(kernel_of(text), capacities, 64);
}

// A product's inner loop: `rows` accumulators of one vector, 1024 steps.
std::string product(int rows) {
  const std::string n = std::to_string(rows);
  return "kernel @product(%a: f32[65536], %b: f32[16384], %c: f32[1024] out) {\n"
         "  parallel %t in 0..1 {\n    regs %acc: f32x16[" +
         n + "]\n    for %k in 0..1024 {\n      unroll %i in 0.." + n +
         " {\n        %acc[%i] = fma(splat(load %a[%i*1024 + %k], 16), load f32x16 %b[%k*16], "
         "%acc[%i])\n      }\n    }\n    unroll %i in 0.." +
         n + " {\n      store %c[%i*16] = %acc[%i]\n    }\n  }\n}";
}

TEST(Cycles, AreThoseOfTheUnitsWhereSumsRunBesideEachOther) {
  EXPECT_NEAR(cycles(product(16)) / 1024, 8.5, 1);  // 17 loads, two a cycle
}

TEST(Cycles, AreThoseOfTheChainWhereOneSumWaitsForItself) {
  EXPECT_NEAR(cycles(product(1)) / 1024, 4, 0.5);  // a multiply-add's latency
}

TEST(Cycles, WhatDoesNotMoveWithALoopIsComputedOnce) {
  const auto division = [](const std::string& index) {
    return cycles(R"(kernel @divide(%x: f32[4096], %y: f32[4096] out) {
  parallel %t in 0..1 {
    for %i in 0..4096 {
      store %y[%i] = 1.0 / load %x[)" +
                  index + R"(]
    }
  }
})");
  };
  EXPECT_GT(division("%i"), 2 * division("%t"));
}

// `chains` sums beside each other in an iteration, each of `steps` dependent multiply-adds.
double chains(int chains, int steps) {
  std::string text =
      "kernel @chains(%x: f32[65536], %y: f32[65536] out) {\n  parallel %t in 0..1 {\n"
      "    for %i in 0..4096 step 16 {\n";
  for (int chain = 0; chain < chains; ++chain) {
    std::string value = "load f32x16 %x[%i + " + std::to_string(4096 * chain) + "]";
    for (int step = 0; step < steps; ++step) value = "fma(" + value + ", 0.5, 0.25)";
    text += "      store %y[%i + " + std::to_string(4096 * chain) + "] = " + value + "\n";
  }
  return cycles(text + "    }\n  }\n}") / (4096 / 16);
}

TEST(Cycles, IterationsWaitWhenTheirOperationsFillTheWindow) {
  EXPECT_NEAR(chains(1, 12), 6, 1);               // short: two a cycle, iterations overlap
  EXPECT_GT(chains(1, 96), 1.8 * chains(2, 48));  // long: one after the other or beside each other
  EXPECT_GT(chains(1, 96), 3 * chains(1, 48));
}

TEST(Cycles, OfAGatherAreThoseOfItsElements) {
  const auto read = [](const std::string& index) {
    return cycles(
        "kernel @read(%x: f32[4096], %i: i64[4096], %y: f32[4096] out) {\n"
        "  parallel %t in 0..1 {\n    for %j in 0..4096 step 16 {\n"
        "      store %y[%j] = load f32x16 %x[" +
        index + "]\n    }\n  }\n}");
  };
  EXPECT_GT(read("load i64x16 %i[%j]"), 8 * read("%j"));
}

TEST(TripCounts, OfABlockAreThoseOfTheBlock) {
  // min(lo + 64, 1000) - lo is 64 at most, though each bound alone says 1000.
  EXPECT_LT(cycles(R"(kernel @blocks(%x: f32[1000], %y: f32[1000] out) {
  parallel %t in 0..16 {
    let %lo: i64 = %t*64
    for %i in %lo..min(%lo + 64, 1000) {
      store %y[%i] = load %x[%i]
    }
  }
})"),
            2000);
}

const char* const kSweeps = R"(kernel @sweeps(%x: f32[4096], %y: f32[4096] out) {
  parallel %t in 0..10 {
    for %i in 0..4096 {
      store %y[%i] = load %x[%i]
    }
  }
})";

TEST(Traffic, OfSweepsThatFitComesOnce) {
  EXPECT_NEAR(traffic(kSweeps, 64 << 10).beyond[0], 2 * 4 * 4096, 256);
}

TEST(Traffic, OfSweepsThatDoNotFitComesEachTime) {
  EXPECT_NEAR(traffic(kSweeps, 16 << 10).beyond[0], 10 * 2 * 4 * 4096, 2560);
}

TEST(Traffic, OfALoopThatDoesNotRunIsNone) {
  const auto of = [](const std::string& trips) {
    return traffic(
        "kernel @tiles(%x: f32[4096], %y: f32[4096] out) {\n  parallel %t in 0..1 {\n"
        "    for %tile in 0.." +
            trips +
            " {\n      for %i in 0..4096 {\n        store %y[%i] = load %x[%i]\n      "
            "}\n    }\n  }\n}",
        64 << 10);
  };
  EXPECT_EQ(of("0").beyond[0], 0);
  EXPECT_EQ(of("0").once, std::vector<double>({0, 0}));
  EXPECT_GT(of("1").beyond[0], 0);
}

TEST(Traffic, OfALoopOverTwoIndicesIsThatOfTwoLoops) {
  const std::string flat = R"(kernel @product(%x: f32[65536], %w: f32[65536], %y: f32[65536] out) {
  parallel %t in 0..65536 {
    let %n: i64 = %t % 256
    let %m: i64 = %t // 256
    regs %acc: f32
    %acc = 0.0
    for %k in 0..256 {
      %acc = %acc + load %x[%m*256 + %k] * load %w[%n*256 + %k]
    }
    store %y[%t] = %acc
  }
})";
  // Every row of x meets all of w, which does not fit.
  EXPECT_GT(traffic(flat, 32 << 10).beyond[0], 200.0 * 4 * 65536);
}

TEST(Traffic, CountsEachPlaceOfABufferOnce) {
  const Traffic counted = traffic(kSweeps, 1 << 10);
  ASSERT_EQ(counted.once.size(), 2u);
  EXPECT_EQ(counted.once[0], 4 * 4096);
  EXPECT_EQ(counted.once[1], 4 * 4096);
}

Price price_of_copy(int64_t num_bytes) {
  Launch launch;
  launch.kind = CopyLaunch{0, 1};
  launch.bytes = 2 * num_bytes;
  return predict({}, launch, *find_target("avx512"), 0);
}

TEST(Price, OfALaunchIsNoLessThanAnyNeeds) {
  const Price small = price_of_copy(4), large = price_of_copy(4 << 20);
  EXPECT_EQ(small.bound, Bound::launch);
  EXPECT_EQ(large.bound, Bound::memory);
  for (const Price& price : {small, large}) {
    EXPECT_GT(price.limit, 0);
    EXPECT_LE(price.limit, price.seconds);
  }
  EXPECT_GT(large.limit, 10 * small.limit);
}

}  // namespace
}  // namespace lathe
