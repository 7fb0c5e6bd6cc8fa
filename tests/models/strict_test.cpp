// numerics: strict means the same bits on every target.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "experiments/runner/flags.h"
#include "experiments/runner/study.h"
#include "tests/models/model_case.h"

namespace lathe {
namespace {

// The outputs on one target ("cpu avx2"); nothing when this machine lacks it.
std::optional<std::vector<Tensor>> outputs_of(const std::string& path, const std::string& target,
                                              const std::string& numerics) {
  const size_t space = target.find(' ');
  LocTable locs;
  ExperimentConfig config;
  const bool is_fixture = path.find("fixtures") != std::string::npos;
  const std::string stem = path.substr(0, path.rfind('.'));
  std::vector<Flag> flags = {{"model", path},
                             {"inputs", is_fixture ? stem + ".inputs.npz" : "random:0"},
                             {"weights", is_fixture ? "file" : "random:0"},
                             {"targets", target.substr(0, space)},
                             {"isa", target.substr(space + 1)},
                             {"numerics", numerics},
                             {"threads", "1"},
                             {"check", "none"},
                             {"measure", "warmup=0,repeats=1,min_ms=0"}};
  Status status = apply_flags(flags, "", locs, config);
  EXPECT_TRUE(status.ok()) << status.error().message;
  BuildFailure failure;
  Result<Study> study = run_study(config, {.keep_outputs = true}, locs, failure);
  if (!study.ok() && study.error().code == "unavailable") return std::nullopt;
  EXPECT_TRUE(study.ok()) << study.error().message;
  if (!study.ok()) return std::nullopt;
  return study->outputs;
}

// Elements whose bits differ; NaN payloads are exempt.
int64_t count_different(const Tensor& a, const Tensor& b) {
  int64_t count = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.get(i), y = b.get(i);
    const bool is_same = (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0;
    count += !is_same;
  }
  return count;
}

class StrictModel : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

// AVX2 is what every machine has that native code runs on.
TEST_P(StrictModel, GivesTheBitsOfAvx2) {
  const auto& [path, target] = GetParam();
  const auto expected = outputs_of(path, "cpu avx2", "strict");
  ASSERT_TRUE(expected);
  const auto got = outputs_of(path, target, "strict");
  if (!got) GTEST_SKIP() << "this machine cannot run " << target;
  ASSERT_EQ(got->size(), expected->size());
  for (size_t i = 0; i < got->size(); ++i)
    EXPECT_EQ(count_different((*expected)[i], (*got)[i]), 0) << "output " << i;
}

// What strict is for: the order of sums is a target's choice otherwise.
TEST(Strict, DefaultNumericsDependOnTheLanes) {
  const std::string path = "experiments/graphs/attention_block.json.gz";
  const auto wide = outputs_of(path, "cpu avx2", "default");
  const auto narrow = outputs_of(path, "wasm simd128", "default");
  ASSERT_TRUE(wide);
  if (!narrow) GTEST_SKIP() << "this machine has no Node";
  EXPECT_GT(count_different(wide->front(), narrow->front()), 0);
}

std::vector<std::string> models() {
  std::vector<std::string> paths = files_with_ending("experiments/graphs", ".json.gz");
  for (const char* name : {"bert_tiny", "gpt_tiny", "resnet_tiny", "unet_tiny", "vit_tiny"})
    paths.push_back(std::string("tests/fixtures/") + name + ".pt2");
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
