// Kernels whose indices begin further in, made to begin at the buffer's begin.
#include "ir/loop/rebase.h"

#include <gtest/gtest.h>

#include "ir/loop/text.h"

namespace lathe::loop {
namespace {

struct Rebased {
  std::vector<int64_t> begins;
  std::string text;
};

Rebased rebased(const std::string& text) {
  LocTable locs;
  Result<Kernel> kernel = parse_kernel(text, locs);
  EXPECT_TRUE(kernel.ok()) << render(kernel.error(), locs);
  if (!kernel.ok()) return {};
  Rebased result{.begins = rebase(*kernel, 64)};
  EXPECT_TRUE(verify(*kernel, true).ok());
  result.text = print(*kernel);
  return result;
}

TEST(Rebase, StepsOfASequenceBecomeOneKernel) {
  const auto step = [](const char* read, const char* written) {
    return std::string("kernel @step(%x: f32[640], %y: f32[640] out) {\n") +
           "  parallel %i in 0..8 {\n    store %y[%i*8" + written + "] = load f32x8 %x[%i*8" +
           read + "]\n  }\n}\n";
  };
  const Rebased first = rebased(step(" + 64", " + 128")), second = rebased(step(" + 256", " + 64"));
  EXPECT_EQ(first.begins, (std::vector<int64_t>{64, 128}));
  EXPECT_EQ(second.begins, (std::vector<int64_t>{256, 64}));
  EXPECT_EQ(first.text, second.text);
  EXPECT_EQ(first.text, R"(kernel @step(%x: f32[64], %y: f32[64] out) {
  parallel %i in 0..8 {
    store %y[%i*8] = load f32x8 %x[%i*8]
  }
}
)");
}

TEST(Rebase, BeginsAreMultiplesOfTheAlignment) {
  const Rebased result = rebased(R"(kernel @f(%x: f16[100], %y: f64[30] out) {
  parallel %i in 0..3 {
    store %y[%i + 21] = f64(load %x[%i + 97])
  }
}
)");
  EXPECT_EQ(result.begins, (std::vector<int64_t>{96, 16}));
  EXPECT_EQ(result.text, R"(kernel @f(%x: f16[4], %y: f64[8] out) {
  parallel %i in 0..3 {
    store %y[%i + 5] = f64(load %x[%i + 1])
  }
}
)");
}

TEST(Rebase, TheFirstOfSeveralIndicesCounts) {
  const Rebased result = rebased(R"(kernel @f(%x: f32[300], %y: f32[16] out) {
  parallel %i in 0..16 {
    store %y[%i] = load %x[%i + 200] + load %x[%i*2 + 100]
  }
}
)");
  EXPECT_EQ(result.begins, (std::vector<int64_t>{96, 0}));
  EXPECT_EQ(result.text, R"(kernel @f(%x: f32[120], %y: f32[16] out) {
  parallel %i in 0..16 {
    store %y[%i] = load %x[%i + 104] + load %x[%i*2 + 4]
  }
}
)");
}

TEST(Rebase, GathersAndDescendingIndicesStayInside) {
  const Rebased result = rebased(R"(kernel @f(%n: i64[64], %x: f32[300], %y: f32[16] out) {
  parallel %i in 0..16 {
    store %y[-%i + 15] = load %x[load %n[-%i + 63] + 64]
  }
}
)");
  EXPECT_EQ(result.begins, (std::vector<int64_t>{48, 0, 0}));
  EXPECT_EQ(result.text, R"(kernel @f(%n: i64[16], %x: f32[300], %y: f32[16] out) {
  parallel %i in 0..16 {
    store %y[-%i + 15] = load %x[load %n[%i*-1 + 15] + 64]
  }
}
)");
}

TEST(Rebase, VectorsOfIndicesMoveToo) {
  const Rebased result = rebased(R"(kernel @f(%x: f32[300], %y: f32[8] out) {
  parallel %i in 0..1 {
    store %y[0] = load f32x8 %x[ramp(64, 2, 8)] + load f32x8 %x[ramp(0, 3, 8) + splat(%i + 80, 8)]
  }
}
)");
  EXPECT_EQ(result.begins, (std::vector<int64_t>{64, 0}));
  EXPECT_EQ(result.text, R"(kernel @f(%x: f32[38], %y: f32[8] out) {
  parallel %i in 0..1 {
    store %y[0] = load f32x8 %x[ramp(0, 2, 8)] + load f32x8 %x[ramp(%i + 16, 3, 8)]
  }
}
)");
}

TEST(Rebase, LetsAreKnownByTheirValues) {
  const Rebased result = rebased(R"(kernel @f(%x: f32[300], %y: f32[16] out) {
  parallel %i in 0..2 {
    let %column: i64 = %i*8
    let %next: i64 = %column + 32
    store %y[%column] = load f32x8 %x[%next + 128]
  }
}
)");
  EXPECT_EQ(result.begins, (std::vector<int64_t>{160, 0}));
  EXPECT_EQ(result.text, R"(kernel @f(%x: f32[16], %y: f32[16] out) {
  parallel %i in 0..2 {
    let %column: i64 = %i*8
    let %next: i64 = %column + 32
    store %y[%column] = load f32x8 %x[%next - 32]
  }
}
)");
}

TEST(Rebase, WhatAMaskKeepsOffTheBeginCountsAsTouched) {
  const Rebased result = rebased(R"(kernel @f(%x: f32[64], %y: f32[16] out) {
  parallel %i in 0..16 {
    store %y[%i] = load %x[%i + 15] mask(1 <= %i) + load %x[%i - 1] mask(1 <= %i)
  }
}
)");
  EXPECT_EQ(result.begins, (std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace lathe::loop
