// Least traffic: what a kernel's indices can touch.
#include "ir/loop/traffic.h"

#include <gtest/gtest.h>

#include "ir/loop/text.h"

namespace lathe::loop {
namespace {

std::vector<int64_t> touched(const std::string& text) {
  LocTable locs;
  Result<Kernel> kernel = parse_kernel(text, locs);
  EXPECT_TRUE(kernel.ok()) << render(kernel.error(), locs);
  return kernel.ok() ? touched_elements(*kernel) : std::vector<int64_t>();
}

TEST(Traffic, AWholeBufferOnceHoweverOftenItIsRead) {
  EXPECT_EQ(touched(R"(kernel @softmax(%x: f32[48], %y: f32[48] out) {
  parallel %r in 0..4 {
    let %top: f32 = max[%k in 0..12](load %x[%r*12 + %k])
    for %i in 0..12 {
      store %y[%r*12 + %i] = load %x[%r*12 + %i] - %top
    }
  }
})"),
            (std::vector<int64_t>{48, 48}));
}

TEST(Traffic, AGatherCountsTheElementsItLoads) {
  EXPECT_EQ(touched(R"(kernel @embed(%ids: i64[4], %table: f32[8000], %y: f32[32] out) {
  parallel %i in 0..4 {
    let %row: i64 = load %ids[%i]
    for %j in 0..8 {
      store %y[%i*8 + %j] = load %table[%row*8 + %j]
    }
  }
})"),
            (std::vector<int64_t>{4, 32, 32}));
}

TEST(Traffic, AGatherCountsNoMoreThanItsTable) {
  EXPECT_EQ(touched(R"(kernel @embed(%ids: i64[400], %table: f32[80], %y: f32[3200] out) {
  parallel %i in 0..400 {
    for %j in 0..8 {
      store %y[%i*8 + %j] = load %table[load %ids[%i]*8 + %j]
    }
  }
})"),
            (std::vector<int64_t>{400, 80, 3200}));
}

TEST(Traffic, ASliceCountsItsPart) {
  EXPECT_EQ(touched(R"(kernel @half(%x: f32[64], %y: f32[32] out) {
  parallel %i in 0..4 {
    store %y[%i*8] = load f32x8 %x[%i*16] + load f32x8 %x[%i*16]
  }
})"),
            (std::vector<int64_t>{32, 32}));
}

TEST(Traffic, ABroadcastCountsOnce) {
  EXPECT_EQ(touched(R"(kernel @add(%x: f32[64], %b: f32[8], %y: f32[64] out) {
  parallel %i in 0..8 {
    for %j in 0..8 {
      store %y[%i*8 + %j] = load %x[%i*8 + %j] + load %b[%j]
    }
  }
})"),
            (std::vector<int64_t>{64, 8, 64}));
}

TEST(Traffic, StepsAndRemaindersAddUp) {
  EXPECT_EQ(touched(R"(kernel @copy(%x: f32[100], %y: f32[22] out) {
  parallel %i in 0..1 {
    for %j in 0..16 step 8 {
      store %y[%j] = load f32x8 %x[%j]
    }
    for %j in 16..22 {
      store %y[%j] = load %x[%j]
    }
  }
})"),
            (std::vector<int64_t>{22, 22}));
}

}  // namespace
}  // namespace lathe::loop
