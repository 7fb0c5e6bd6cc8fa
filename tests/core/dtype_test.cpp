// Promotion and rounding of element types.
#include "ir/type/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace lathe {
namespace {

// torch.promote_types of 2.13, rows and columns in the order of the enum.
constexpr std::string_view kPromotions[kNumDTypes] = {
    "bool u8 i8 i16 i32 i64 f16 bf16 f32 f64",  "u8 u8 i16 i16 i32 i64 f16 bf16 f32 f64",
    "i8 i16 i8 i16 i32 i64 f16 bf16 f32 f64",   "i16 i16 i16 i16 i32 i64 f16 bf16 f32 f64",
    "i32 i32 i32 i32 i32 i64 f16 bf16 f32 f64", "i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64",
    "f16 f16 f16 f16 f16 f16 f16 f32 f32 f64",  "bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64",
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f64",  "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64",
};

TEST(DType, PromotesAsPyTorchDoes) {
  for (int i = 0; i < kNumDTypes; ++i) {
    std::string row;
    for (int j = 0; j < kNumDTypes; ++j)
      row += std::string(j == 0 ? "" : " ") +
             std::string(dtype_name(promote(static_cast<DType>(i), static_cast<DType>(j))));
    EXPECT_EQ(row, kPromotions[i]);
  }
}

TEST(DType, NamesReadBack) {
  for (int i = 0; i < kNumDTypes; ++i)
    EXPECT_EQ(parse_dtype(dtype_name(static_cast<DType>(i))), static_cast<DType>(i));
  EXPECT_EQ(parse_dtype("f33"), std::nullopt);
}

TEST(DType, RoundsHalvesToEven) {
  EXPECT_EQ(round_to(DType::f16, 1 + 0x1p-11), 1);               // a tie
  EXPECT_EQ(round_to(DType::f16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);  // a tie
  EXPECT_EQ(round_to(DType::f16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(round_to(DType::f16, 65519.9), 65504);
  EXPECT_EQ(round_to(DType::f16, 65520), HUGE_VAL);
  EXPECT_EQ(round_to(DType::f16, 0x1p-25), 0);
  EXPECT_EQ(round_to(DType::f16, 3 * 0x1p-25), 0x1p-23);
  EXPECT_EQ(round_to(DType::bf16, 1 + 0x1p-8), 1);
  EXPECT_EQ(round_to(DType::bf16, -(1 + 3 * 0x1p-8)), -(1 + 0x1p-6));
  EXPECT_EQ(round_to(DType::bf16, 3.4e38), HUGE_VAL);
  EXPECT_TRUE(std::isnan(round_to(DType::bf16, NAN)));
}

TEST(DType, Tf32KeepsTenBitsBehindThePoint) {
  EXPECT_EQ(round_to_tf32(1 + 0x1p-10f), 1 + 0x1p-10f);
  EXPECT_EQ(round_to_tf32(1 + 0x1p-11f), 1.0f);  // half way: to even
  EXPECT_EQ(round_to_tf32(1 + 0x3p-11f), 1 + 0x1p-9f);
  EXPECT_EQ(round_to_tf32(-1 - 0x1.8p-11f), -1 - 0x1p-10f);
  EXPECT_EQ(round_to_tf32(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(round_to_tf32(NAN)));
}

TEST(DType, RoundsIntegersByTruncationAndWrapping) {
  EXPECT_EQ(round_to(DType::i32, -2.7), -2);
  EXPECT_EQ(round_to(DType::u8, 300), 44);
  EXPECT_EQ(round_to(DType::u8, -1), 255);
  EXPECT_EQ(round_to(DType::i32, 2147483648.0), -2147483648.0);
  EXPECT_EQ(round_to(DType::i64, NAN), static_cast<double>(INT64_MIN));
  EXPECT_EQ(round_to(DType::b8, -0.5), 1);
}

TEST(DType, HalfBitsRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float f16 = f16_to_f32(half);
    const float bf16 = bf16_to_f32(half);
    if (!std::isnan(f16)) {
      ASSERT_EQ(f32_to_f16(f16), half);
      ASSERT_EQ(round_to(DType::f16, double{f16}), double{f16});
    }
    if (!std::isnan(bf16)) {
      ASSERT_EQ(f32_to_bf16(bf16), half);
      ASSERT_EQ(round_to(DType::bf16, double{bf16}), double{bf16});
    }
    ASSERT_EQ(std::isnan(f16), std::isnan(f16_to_f32(f32_to_f16(f16))));
  }
  EXPECT_EQ(f16_to_f32(0x3c01), 1 + 0x1p-10f);
}

}  // namespace
}  // namespace lathe
