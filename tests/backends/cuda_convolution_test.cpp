// What cuDNN is asked for, by one that notes it; and what a study says of TF32.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backends/cuda/device/backend.h"
#include "experiments/runner/study.h"
#include "frontend/driver/build.h"
#include "tests/backends/fake_cuda/fake_cudnn.h"
#include "tests/backends/fake_cuda/load.h"

namespace lathe {
namespace {

constexpr int kForward = 10, kBackwardData = 12;  // operations
constexpr int kForwardX = 704, kForwardY = 705;   // their tensors
constexpr int kBackwardDx = 710, kBackwardDy = 711;
constexpr int kOnTensorCores = 0, kOnOthers = 1;  // engines

using Extents = std::vector<int64_t>;

class CudaConvolution : public testing::Test {
 protected:
  CudaConvolution() {
    fake();
    const std::filesystem::path file =
        std::filesystem::current_path() / "tests/backends/fake_cuda/libcudnn.so.9";
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    EXPECT_NE(library, nullptr) << dlerror();
    noted_ = reinterpret_cast<FakeCudnn* (*)()>(dlsym(library, "fake_cudnn"))();
    noted_->runs.clear();
  }

  // What a run of the graph asked for.
  std::vector<FakeCudnnRun> runs_of(const std::string& text, Numerics numerics) {
    LocTable locs;
    auto model = load_text(text, "m.lathe", {}, locs);
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
    auto backend = make_cuda_backend("");
    EXPECT_TRUE(backend.ok()) << (backend.ok() ? "" : backend.error().message);
    BuildFailure failure;
    auto built = build(*model, **backend, {.threads = 1, .numerics = numerics}, failure);
    EXPECT_TRUE(built.ok()) << (built.ok() ? "" : built.error().message);
    std::vector<Tensor> inputs;
    for (const auto& param : model->module.main().params)
      inputs.push_back(Tensor::zeros(param->types[0].dtype, param->types[0].static_shape()));
    auto call = CallBuffers::create(built->program(), inputs, model->weights());
    EXPECT_TRUE(call.ok());
    const Status ran = call->run(*built->executable);
    EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
    return noted_->runs;
  }

  FakeCudnn* noted_ = nullptr;
};

constexpr char kImages[] = R"(func @main(%x: f32[2, 8, 5, 7], %w: f32[16, 8, 3, 3])
    -> f32[2, 16, 5, 7] {
  %0 = convolution(%x, %w) {padding = [1, 1]}
  return %0
})";

constexpr char kTransposed[] = R"(func @main(%x: f32[2, 16, 5, 7], %w: f32[16, 8, 3, 3])
    -> f32[2, 8, 11, 15] {
  %0 = convolution(%x, %w) {stride = [2, 2], transposed = true}
  return %0
})";

constexpr char kHalves[] = R"(func @main(%x: f16[1, 8, 4, 5, 6], %w: f16[8, 8, 2, 2, 2])
    -> f16[1, 8, 3, 4, 5] {
  %0 = convolution(%x, %w)
  return %0
})";

TEST_F(CudaConvolution, RunsForward) {
  const std::vector<FakeCudnnRun> runs = runs_of(kImages, Numerics::standard);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].operation, kForward);
  EXPECT_EQ(runs[0].extents.at(kForwardX), (Extents{2, 8, 5, 7}));
  EXPECT_EQ(runs[0].extents.at(kForwardY), (Extents{2, 16, 5, 7}));
}

TEST_F(CudaConvolution, TransposedIsTheGradientByTheImage) {
  const std::vector<FakeCudnnRun> runs = runs_of(kTransposed, Numerics::standard);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].operation, kBackwardData);
  EXPECT_EQ(runs[0].extents.at(kBackwardDy), (Extents{2, 16, 5, 7}));
  EXPECT_EQ(runs[0].extents.at(kBackwardDx), (Extents{2, 8, 11, 15}));
}

TEST_F(CudaConvolution, KeepsF32WhenAskedTo) {
  EXPECT_EQ(runs_of(kImages, Numerics::standard).back().engine, kOnTensorCores);
  EXPECT_EQ(runs_of(kImages, Numerics::ieee).back().engine, kOnOthers);
  EXPECT_EQ(runs_of(kTransposed, Numerics::ieee).back().engine, kOnOthers);
  EXPECT_EQ(runs_of(kHalves, Numerics::ieee).back().engine, kOnTensorCores);
}

// The results are none here; what is said of them is.
TEST_F(CudaConvolution, AStudySaysWhichMayUseTf32) {
  const std::string file = testing::TempDir() + "/images.lathe";
  std::ofstream(file) << kImages;
  const auto study_of = [&](Numerics numerics) {
    ExperimentConfig config;
    config.models = {{.name = "images", .source = file}};
    config.targets = {"cuda"};
    config.threads = {1};
    config.request.numerics = numerics;
    LocTable locs;
    BuildFailure failure;
    auto study = run_study(config, {}, locs, failure);
    EXPECT_TRUE(study.ok()) << (study.ok() ? "" : study.error().message);
    return study.ok() ? *std::move(study) : Study();
  };
  EXPECT_EQ(study_of(Numerics::standard).about_tf32(),
            "Convolutions in f32 may read TF32, 10 bits behind the point, as PyTorch's do by "
            "default: 1 of images. What that rounds is allowed for; --numerics ieee keeps f32.");
  EXPECT_EQ(study_of(Numerics::ieee).about_tf32(), "");
}

}  // namespace
}  // namespace lathe
