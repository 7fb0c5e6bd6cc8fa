// Programs of whole models print, parse and print the same, for every target. Weights stay out.
#include <gtest/gtest.h>

#include "frontend/driver/build.h"
#include "ir/target/target.h"
#include "tests/models/model_case.h"
#include "tests/program/round_trip.h"

namespace lathe {
namespace {

class ZooProgram : public testing::TestWithParam<std::string> {};

TEST_P(ZooProgram, ReadsBack) {
  auto model = load_seeded_model(GetParam());
  ASSERT_TRUE(model.ok()) << model.error().message;
  for (const char* target : kTargets) {
    SCOPED_TRACE(target);
    BuildFailure failure;
    auto lowered = lower(*model, *find_target(target), {}, failure);
    ASSERT_TRUE(lowered.ok()) << render(lowered.error(), failure.locs);
    EXPECT_TRUE(round_trip(lowered->unit.program).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooProgram,
                         testing::ValuesIn(files_with_ending("tests/zoo", ".json.gz")),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
