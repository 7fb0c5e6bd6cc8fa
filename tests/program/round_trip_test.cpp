// A program that was printed and parsed computes the same bits.
#include <gtest/gtest.h>

#include "backends/interp/run_program.h"
#include "frontend/driver/build.h"
#include "ir/target/target.h"
#include "tests/models/model_case.h"
#include "tests/ops/example_case.h"
#include "tests/program/round_trip.h"

namespace lathe {
namespace {

std::vector<Tensor> run(const Program& program, const Model& model,
                        const std::vector<Tensor>& inputs) {
  auto call = CallBuffers::create(program, inputs, model.weights());
  EXPECT_TRUE(call.ok()) << call.error().message;
  if (!call.ok()) return {};
  WeightStore weights = model.weights();
  CompileOptions options;
  options.weight = [&](const std::string& name) { return weights.get(name); };
  const Status ran = call->run_with(
      [&](auto in, auto out) { return run_program_interpreted(program, options, in, out); });
  EXPECT_TRUE(ran.ok()) << ran.error().message;
  auto outputs = call->outputs();
  EXPECT_TRUE(outputs.ok()) << outputs.error().message;
  return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
}

void expect_same_bits(const Model& model, const std::vector<Tensor>& inputs) {
  for (const char* target : kTargets) {
    SCOPED_TRACE(target);
    BuildFailure failure;
    auto lowered = lower(model, *find_target(target), {}, failure);
    ASSERT_TRUE(lowered.ok()) << render(lowered.error(), failure.locs);
    const Program& program = lowered->unit.program;
    auto again = round_trip(program);
    ASSERT_TRUE(again.ok());
    const std::vector<Tensor> first = run(program, model, inputs);
    const std::vector<Tensor> second = run(*again, model, inputs);
    ASSERT_EQ(first.size(), second.size());
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(to_bytes(first[i]), to_bytes(second[i]));
  }
}

class OpProgram : public testing::TestWithParam<ExampleCase> {};

TEST_P(OpProgram, ReadsBack) {
  auto example = build_example(GetParam());
  ASSERT_TRUE(example.ok()) << example.error().message;
  Model model;
  model.module = std::move(example->module);
  expect_same_bits(model, example->inputs);
}

INSTANTIATE_TEST_SUITE_P(Rows, OpProgram, testing::ValuesIn(lowerable_examples()),
                         [](const auto& test) { return test.param.name(); });

class FixtureProgram : public testing::TestWithParam<std::string> {};

TEST_P(FixtureProgram, ReadsBack) {
  auto model = load_seeded_model(GetParam());
  ASSERT_TRUE(model.ok()) << model.error().message;
  auto inputs = random_inputs(*model, 0);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  expect_same_bits(*model, *inputs);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FixtureProgram,
                         testing::ValuesIn(files_with_ending("tests/fixtures", ".pt2")),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
