// Every fixture compiles, agrees with the interpreter at one and two threads, and gives PyTorch's
// results for PyTorch's inputs.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/model_case.h"

namespace lathe {
namespace {

constexpr char kBranches[] = "tests/fixtures/cond.pt2";

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, GivesPyTorchsResults) {
  std::string stem = GetParam().substr(0, GetParam().size() - std::string(".pt2").size());
  expect_model_runs(
      {.path = GetParam(), .inputs = stem + ".inputs.npz", .expected = stem + ".outputs.npz"});
}

// All but what Lathe refuses.
std::vector<std::string> fixtures() {
  std::vector<std::string> paths = files_with_ending("tests/fixtures", ".pt2");
  paths.erase(std::remove(paths.begin(), paths.end(), kBranches), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Files, Fixture, testing::ValuesIn(fixtures()),
                         [](const auto& file) { return test_name(file.param); });

TEST(Fixture, BranchesOnDataAreRefusedByName) {
  EXPECT_EQ(error_of_model({.path = kBranches}), "unsupported-op: higher_order.cond");
}

class Graph : public testing::TestWithParam<std::string> {};

TEST_P(Graph, AgreesWithTheInterpreter) {
  expect_model_runs({.path = GetParam(), .weights = "random:0"});
}

INSTANTIATE_TEST_SUITE_P(Files, Graph,
                         testing::ValuesIn(files_with_ending("experiments/graphs", ".json.gz")),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
