// Every kernel of every op example compiles for a GPU, which takes NVRTC but no GPU.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/device/nvrtc.h"
#include "backends/cuda/emit_program.h"
#include "frontend/driver/build.h"
#include "ir/graph/text.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

class CudaExample : public testing::TestWithParam<ExampleCase> {};

TEST_P(CudaExample, CompilesForAnH200) {
  static const Status nvrtc = cuda::find_nvrtc();
  if (!nvrtc.ok()) {
    ASSERT_EQ(std::getenv("LATHE_EXPECTS_NVRTC"), nullptr) << nvrtc.error().message;
    GTEST_SKIP() << nvrtc.error().message;
  }
  auto example = build_example(GetParam());
  ASSERT_TRUE(example.ok()) << example.error().message;
  Model model;
  model.module = std::move(example->module);
  const Target& target = *find_target("sm_90");
  BuildFailure failure;
  auto lowered = lower(model, target, {.threads = 1}, failure);
  ASSERT_TRUE(lowered.ok()) << lowered.error().message << "\n" << print(model.module);
  auto source = cuda::emit_program(lowered->unit.program, target);
  ASSERT_TRUE(source.ok()) << source.error().message << "\n" << print(lowered->unit.program);
  auto code = cuda::compile_cuda(source->text, target.isa, cuda::CodeKind::ptx);
  ASSERT_TRUE(code.ok()) << code.error().message << "\n" << source->text;
  for (const std::string& symbol : source->symbols)
    if (!symbol.empty()) EXPECT_NE(code->find(".entry " + symbol), std::string::npos) << symbol;
}

INSTANTIATE_TEST_SUITE_P(Rows, CudaExample, testing::ValuesIn(lowerable_examples()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace lathe
