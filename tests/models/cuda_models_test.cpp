// The kernels of whole models compile for a GPU, which takes NVRTC but no GPU.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/device/nvrtc.h"
#include "backends/cuda/emit_program.h"
#include "frontend/driver/build.h"
#include "tests/models/model_case.h"

namespace lathe {
namespace {

class CudaModel : public testing::TestWithParam<std::string> {};

TEST_P(CudaModel, CompilesForAnH200) {
  static const Status nvrtc = cuda::find_nvrtc();
  if (!nvrtc.ok()) {
    ASSERT_EQ(std::getenv("LATHE_EXPECTS_NVRTC"), nullptr) << nvrtc.error().message;
    GTEST_SKIP() << nvrtc.error().message;
  }
  auto model = load_seeded_model(GetParam());
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Target& target = *find_target("sm_90");
  BuildFailure failure;
  auto lowered = lower(*model, target, {.threads = 1}, failure);
  ASSERT_TRUE(lowered.ok()) << render(lowered.error(), failure.locs);
  auto source = cuda::emit_program(lowered->unit.program, target);
  ASSERT_TRUE(source.ok()) << source.error().message;
  auto code = cuda::compile_cuda(source->text, target.isa, cuda::CodeKind::cubin);
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(code->substr(1, 3), "ELF");
}

std::vector<std::string> models() {
  std::vector<std::string> paths;
  for (const char* name :
       {"lerp", "ffnn", "resnet18", "resnet50", "bert_base", "gpt2", "unet", "vit_b_16"})
    paths.push_back(std::string("tests/zoo/") + name + ".aten.json.gz");
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Zoo, CudaModel, testing::ValuesIn(models()),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
