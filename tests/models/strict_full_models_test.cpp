// numerics: strict on whole models: native code and WebAssembly give the same bits.
#include <gtest/gtest.h>

#include "tests/models/model_case.h"
#include "tests/models/strict_case.h"

namespace lathe {
namespace {

class StrictFullModel : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(StrictFullModel, GivesTheBitsOfAvx2) {
  const auto& [name, target] = GetParam();
  expect_bits_of_avx2("tests/zoo/" + name + ".aten.json.gz", target);
}

INSTANTIATE_TEST_SUITE_P(Zoo, StrictFullModel,
                         testing::Combine(testing::Values("lerp", "ffnn", "resnet18", "resnet50",
                                                          "bert_base", "gpt2", "unet", "vit_b_16"),
                                          testing::Values("cpu avx512", "wasm simd128",
                                                          "wasm relaxed")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" +
                                  test_name(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace lathe
