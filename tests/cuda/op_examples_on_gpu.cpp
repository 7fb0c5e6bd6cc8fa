// Every example of every op row on the GPU of this machine, against the interpreter. Needs no LLVM,
// so that it travels alone; on_gpu.sh runs it.
#include <gtest/gtest.h>

#include "backends/cuda/device/backend.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "ir/graph/text.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

class OpExample : public testing::TestWithParam<ExampleCase> {};

TEST_P(OpExample, AgreesWithTheInterpreterOnTheGpu) {
  static const Status is_there = check_cuda();
  if (!is_there.ok()) GTEST_SKIP() << is_there.error().message;
  auto example = build_example(GetParam());
  ASSERT_TRUE(example.ok()) << example.error().message;
  Model model;
  model.module = std::move(example->module);
  auto functional = reference_module(model);
  ASSERT_TRUE(functional.ok()) << functional.error().message;
  auto backend = make_cuda_backend("");
  ASSERT_TRUE(backend.ok()) << backend.error().message;
  const bool uses_tf32 = (*backend)->target().uses_tf32;
  auto reference = evaluate_reference(*functional, example->inputs, {.uses_tf32 = uses_tf32});
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  BuildFailure failure;
  auto built = build(model, **backend, {.threads = 1}, failure);
  ASSERT_TRUE(built.ok()) << built.error().message << "\n" << print(model.module);
  auto call = CallBuffers::create(built->program(), example->inputs, model.weights());
  ASSERT_TRUE(call.ok()) << call.error().message;
  for (int i = 0; i < 2; ++i) {  // the second run finds everything allocated
    Status ran = call->run(*built->executable);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    auto outputs = call->outputs();
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    Agreement agreement = compare(*outputs, *reference);
    EXPECT_TRUE(agreement.passed) << agreement.why << "\n" << print(model.module);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, OpExample, testing::ValuesIn(lowerable_examples()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace lathe
