// numerics: strict means the same bits on every target.
#include <gtest/gtest.h>

#include "tests/models/model_case.h"
#include "tests/models/strict_case.h"

namespace lathe {
namespace {

class StrictModel : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(StrictModel, GivesTheBitsOfAvx2) {
  expect_bits_of_avx2(std::get<0>(GetParam()), std::get<1>(GetParam()));
}

// What strict is for: the order of sums is a target's choice otherwise.
TEST(Strict, DefaultNumericsDependOnTheLanes) {
  const std::string path = "experiments/graphs/attention_block.json.gz";
  const Status has_node = check_target("wasm simd128");
  if (!has_node.ok()) GTEST_SKIP() << has_node.error().message;
  const auto wide = outputs_of(path, "cpu avx2", "default");
  ASSERT_TRUE(wide.ok()) << wide.error().message;
  const auto narrow = outputs_of(path, "wasm simd128", "default");
  ASSERT_TRUE(narrow.ok()) << narrow.error().message;
  ASSERT_FALSE(wide->empty());
  ASSERT_EQ(narrow->size(), wide->size());
  ASSERT_EQ(narrow->front().shape, wide->front().shape);
  EXPECT_GT(count_different(wide->front(), narrow->front()), 0);
}

std::vector<std::string> models() {
  std::vector<std::string> paths = files_with_ending("experiments/graphs", ".json.gz");
  for (const char* name : {"bert_tiny", "gpt_tiny", "resnet_tiny", "unet_tiny", "vit_tiny"})
    paths.push_back(std::string("tests/fixtures/") + name + ".pt2");
  paths.push_back("tests/models/deep_product.lathe");
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Models, StrictModel,
                         testing::Combine(testing::ValuesIn(models()),
                                          testing::Values("cpu avx512", "wasm simd128",
                                                          "wasm relaxed")),
                         [](const auto& test) {
                           return test_name(std::get<0>(test.param)) + "_" +
                                  test_name(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace lathe
