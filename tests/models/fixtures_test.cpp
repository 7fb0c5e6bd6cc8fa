// Every fixture compiles, agrees with the interpreter at one and two threads, and gives PyTorch's
// results for PyTorch's inputs.
#include <gtest/gtest.h>

#include "tests/models/model_case.h"

namespace lathe {
namespace {

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, GivesPyTorchsResults) {
  std::string stem = GetParam().substr(0, GetParam().size() - std::string(".pt2").size());
  expect_model_runs(
      {.path = GetParam(), .inputs = stem + ".inputs.npz", .expected = stem + ".outputs.npz"});
}

INSTANTIATE_TEST_SUITE_P(Files, Fixture,
                         testing::ValuesIn(files_with_ending("tests/fixtures", ".pt2")),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
