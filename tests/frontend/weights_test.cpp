// Random weights: the rules, and that they never change.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "frontend/file/inflate.h"
#include "frontend/weights/random.h"

namespace lathe {
namespace {

std::vector<float> floats(std::string_view name, TensorType type, uint64_t seed) {
  auto bytes = random_tensor(name, type, weight_rule(name, type), seed);
  std::vector<float> values(bytes->size / 4);
  std::memcpy(values.data(), bytes->data, bytes->size);
  return values;
}

struct Spread {
  float low, high;
  double deviation;
};
Spread spread(const std::vector<float>& values) {
  Spread result{values[0], values[0], 0};
  double sum = 0, squares = 0;
  for (float value : values) {
    result.low = std::min(result.low, value);
    result.high = std::max(result.high, value);
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  double mean = sum / static_cast<double>(values.size());
  result.deviation = std::sqrt(squares / static_cast<double>(values.size()) - mean * mean);
  return result;
}

TEST(RandomWeights, ScaleFollowsNameAndShape) {
  Spread linear = spread(floats("fc.weight", {DType::f32, {64, 300}}, 1));
  EXPECT_NEAR(linear.deviation, 1 / std::sqrt(300.0), 0.002);
  Spread norm = spread(floats("norm.weight", {DType::f32, {5000}}, 1));
  EXPECT_GE(norm.low, 0.9f);
  EXPECT_LE(norm.high, 1.1f);
  Spread variance = spread(floats("bn.running_var", {DType::f32, {5000}}, 1));
  EXPECT_GT(variance.low, 0.49f);
  Spread bias = spread(floats("fc.bias", {DType::f32, {5000}}, 1));
  EXPECT_LE(bias.high, 0.05f);
  Spread embedding = spread(floats("embed_tokens.weight", {DType::f32, {50, 100}}, 1));
  EXPECT_NEAR(embedding.deviation, 0.02, 0.002);
}

TEST(RandomWeights, IntegersAndBoolsAreInRange) {
  TensorType ids{DType::i64, {1, 4}};
  auto bytes = random_tensor("position_ids", ids, weight_rule("position_ids", ids), 3);
  int64_t values[4];
  std::memcpy(values, bytes->data, sizeof values);
  EXPECT_EQ(values[3], 3);
  TensorType mask{DType::b8, {2, 2}};
  auto causal = random_tensor("attn.mask", mask, weight_rule("attn.mask", mask), 3);
  EXPECT_EQ(causal->text(), std::string("\1\0\1\1", 4));
  TensorType input{DType::i64, {1000}};
  auto tokens = random_tensor("input_ids", input, input_rule("input_ids", input, {5, 9}), 3);
  for (size_t i = 0; i < 1000; ++i) {
    int64_t token = 0;
    std::memcpy(&token, tokens->data + i * 8, 8);
    EXPECT_GE(token, 5);
    EXPECT_LT(token, 9);
  }
}

// Measured on the first version; a change would change every published result.
TEST(RandomWeights, ValuesNeverChange) {
  TensorType type{DType::f32, {1001}};
  auto bytes = random_tensor("fc.weight", type, weight_rule("fc.weight", type), 42);
  EXPECT_EQ(crc32_of(bytes->text()), 0x5a61369cu);
}

TEST(RandomWeights, SeedAndNameMatter) {
  TensorType type{DType::f32, {4, 4}};
  EXPECT_NE(floats("a.weight", type, 0), floats("a.weight", type, 1));
  EXPECT_NE(floats("a.weight", type, 0), floats("b.weight", type, 0));
}

TEST(RandomWeights, AbsurdSizesAreRefused) {
  TensorType type{DType::f32, {int64_t{1} << 40, int64_t{1} << 40}};
  auto made = random_tensor("a", type, weight_rule("a", type), 0);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, "too-large");
}

}  // namespace
}  // namespace lathe
