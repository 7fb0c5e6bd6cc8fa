// What is lowered for a GPU, run by the interpreter: fixtures against the reference, with no GPU.
#include <gtest/gtest.h>

#include "backends/interp/backend.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "tests/models/model_case.h"

namespace lathe {
namespace {

class InterpretedCuda : public testing::TestWithParam<std::string> {};

TEST_P(InterpretedCuda, AgreesWithTheReference) {
  auto model = load_seeded_model(GetParam());
  ASSERT_TRUE(model.ok()) << model.error().message;
  auto inputs = random_inputs(*model, 0);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  auto functional = reference_module(*model);
  ASSERT_TRUE(functional.ok()) << functional.error().message;
  auto reference = evaluate_reference(*functional, *inputs, {.dims = model->dims});
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  std::unique_ptr<Backend> backend = make_interpreter(*find_target("sm_90"));
  BuildFailure failure;
  auto built = build(*model, *backend, {.threads = 1}, failure);
  ASSERT_TRUE(built.ok()) << render(built.error(), failure.locs);
  auto call = CallBuffers::create(built->program(), *inputs, model->weights());
  ASSERT_TRUE(call.ok()) << call.error().message;
  Status ran = call->run(*built->executable);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  auto outputs = call->outputs();
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  Agreement agreement = compare(*outputs, *reference);
  EXPECT_TRUE(agreement.passed) << agreement.why;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, InterpretedCuda,
                         testing::ValuesIn(files_with_ending("tests/fixtures", ".pt2")),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
