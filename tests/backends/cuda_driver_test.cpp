// What goes wrong on a GPU, on a driver that fails when told to: one clear error, everything let
// go, and the next run works.
#include <gtest/gtest.h>

#include <set>

#include "backends/cuda/device/backend.h"
#include "frontend/driver/build.h"
#include "ir/support/diag_codes.h"
#include "tests/backends/fake_cuda/load.h"

namespace lathe {
namespace {

// A weight, kernels, and an output that is an input.
constexpr char kModel[] = R"(func @main(%x: f32[64, 48]) -> f32[64, 48], f32[48], f32[64, 48] {
  %w = constant() {name = "w", dtype = f32, shape = [48]}
  %0 = softmax(%x) {dim = -1}
  %1 = mul(%0, %w)
  %2 = sum(%1) {dim = [0], keepdim = false}
  return %1, %2, %x
})";

class CudaDriver : public testing::Test {
 protected:
  CudaDriver() {
    fake().calls = 0;
    fake().failing_call = -1;
    LocTable locs;
    auto model = load_text(kModel, "m.lathe", {.random_weights = 0}, locs);
    EXPECT_TRUE(model.ok()) << model.error().message;
    model_ = *std::move(model);
    input_ = Tensor::zeros(DType::f32, {64, 48});
  }

  Result<Build> compile(bool reduce_overhead) {
    auto backend = make_cuda_backend("");
    EXPECT_TRUE(backend.ok());
    BuildFailure failure;
    return build(model_, **backend,
                 {.threads = 1, .mode = reduce_overhead ? "reduce-overhead" : "default"}, failure);
  }

  Status open() {
    Status status = check_cuda();
    fake().num_devices = 1;
    fake().driver_version = 13000;
    fake().capability = 90;
    return status;
  }

  Model model_;
  Tensor input_;
};

std::string message(const Status& status) {
  return status.ok() ? "no error" : status.error().message;
}

// These come first: a device that was opened once stays open.
TEST_F(CudaDriver, SaysThatThereIsNoGpu) {
  fake().num_devices = 0;
  EXPECT_EQ(message(open()), "the driver finds no NVIDIA GPU");
}

TEST_F(CudaDriver, SaysThatTheDriverIsTooOld) {
  fake().driver_version = 11080;
  EXPECT_EQ(message(open()),
            "NVIDIA's driver is for CUDA 11.8, expected 12.0 or later: it has to be updated");
}

TEST_F(CudaDriver, SaysThatTheGpuIsTooOld) {
  fake().capability = 80;
  EXPECT_EQ(message(open()), "Fake GPU has compute capability 8.0, expected 9.0 or later");
}

TEST_F(CudaDriver, SaysWhichStepOfOpeningFailed) {
  fake().failing_call = 1;
  EXPECT_EQ(message(open()),
            "starting the driver failed on the GPU: a failure that was asked for (CUDA error 100)");
}

// Makes every call of a whole life fail in turn, and looks at what is left behind.
class EveryCall : public CudaDriver, public testing::WithParamInterface<bool> {};

TEST_P(EveryCall, OfCompilingMayFail) {
  ASSERT_EQ(message(open()), "no error");
  const int handles = fake().live_handles;
  const size_t bytes = fake().live_bytes;
  for (int failing = 1;; ++failing) {
    fake().calls = 0;
    fake().failing_call = failing;
    auto made = compile(GetParam());
    if (made.ok()) break;  // it takes fewer calls
    EXPECT_EQ(made.error().code, code::kUnavailable) << failing;
    EXPECT_EQ(fake().live_handles, handles) << failing << ": " << made.error().message;
    EXPECT_EQ(fake().live_bytes, bytes) << failing << ": " << made.error().message;
    ASSERT_LT(failing, 1000);
  }
  EXPECT_GT(fake().calls, 5);
  EXPECT_EQ(fake().live_handles, handles);
  EXPECT_EQ(fake().live_bytes, bytes);
}

TEST_P(EveryCall, OfARunMayFailAndTheNextRunWorks) {
  ASSERT_EQ(message(open()), "no error");
  int num_failures = 0;
  for (int failing = 1;; ++failing) {
    auto made = compile(GetParam());
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto call = CallBuffers::create(made->program(), {input_}, model_.weights());
    ASSERT_TRUE(call.ok());
    fake().calls = 0;
    fake().failing_call = failing;
    const Status first = call->run(*made->executable);
    EXPECT_FALSE(fake().is_capturing) << failing;
    fake().failing_call = -1;
    const int before = fake().launches;
    EXPECT_EQ(message(call->run(*made->executable)), "no error") << failing;
    EXPECT_GT(fake().launches, before) << failing;
    if (first.ok()) break;
    ++num_failures;
    EXPECT_EQ(first.error().code, code::kUnavailable) << failing;
    ASSERT_LT(failing, 1000);
  }
  EXPECT_GT(num_failures, 1) << "memory is asked for twice";
  EXPECT_EQ(fake().live_bytes, 0u);
}

// Neither cuBLASLt nor cuDNN is beside the fake driver.
TEST_F(CudaDriver, WhatALibraryRefusesOtherKindsMake) {
  ASSERT_EQ(message(open()), "no error");
  LocTable locs;
  auto model = load_text(
      R"(func @main(%x: f16[64, 48], %y: f16[1, 8, 6, 6]) -> f16[64, 64], f16[1, 8, 12, 12] {
  %w = constant() {name = "w", dtype = f16, shape = [48, 64]}
  %v = constant() {name = "v", dtype = f16, shape = [8, 8, 3, 3]}
  %0 = matmul(%x, %w)
  %1 = convolution(%y, %v) {padding = [1, 1]}
  %2 = convolution(%1, %v) {stride = [2, 2], padding = [1, 1], output_padding = [1, 1],
                            transposed = true}
  return %0, %2
})",
      "m.lathe", {.random_weights = 0}, locs);
  ASSERT_TRUE(model.ok()) << model.error().message;
  model_ = *std::move(model);
  auto made = compile(false);
  ASSERT_TRUE(made.ok()) << made.error().message;
  for (const Launch& step : made->program().steps)
    EXPECT_FALSE(std::holds_alternative<LibraryLaunch>(step.kind)) << step.label;
  int num_refused = 0;
  for (const PassRecord& pass : made->lowered.report.passes)
    for (const KernelChoice& choice : pass.choices)
      for (const KernelCandidate& candidate : choice.candidates)
        if (candidate.why_not.starts_with("the library refused it: ")) ++num_refused;
  EXPECT_EQ(num_refused, 4);  // the product, and the convolutions, one folded too
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryCall, testing::Bool(), [](const auto& mode) {
  return mode.param ? "ReduceOverhead" : "Default";
});

// A step reads the first weight, init alone the second.
TEST_F(CudaDriver, ReadsWeightsWhereTheyLieOnTheGpu) {
  ASSERT_EQ(message(open()), "no error");
  LocTable locs;
  auto model = load_text(
      R"(func @main(%x: f32[64, 48]) -> f32[64, 48] {
  %w = constant() {name = "w", dtype = f32, shape = [48]}
  %v = constant() {name = "v", dtype = f32, shape = [48]}
  %0 = exp(%v)
  %1 = mul(%x, %w)
  %2 = add(%1, %0)
  return %2
})",
      "m.lathe", {.random_weights = 0}, locs);
  ASSERT_TRUE(model.ok()) << model.error().message;
  model_ = *std::move(model);
  model_.random_weights.reset();
  constexpr size_t kBytes = 48 * sizeof(float);
  const auto bytes_with = [&](const std::byte* w, const std::byte* v) {
    for (const auto& [name, bytes] : {std::pair{"w", w}, std::pair{"v", v}}) {
      TensorData& data = model_.module.weights[name].data;
      data.bytes = bytes;
      data.num_bytes = kBytes;
      data.strides = {1};
    }
    const size_t before = fake().live_bytes;
    auto made = compile(false);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return fake().live_bytes - before;
  };
  const std::vector<std::byte> host(kBytes);
  const size_t all = bytes_with(host.data(), host.data());
  auto owner = compile(false);
  ASSERT_TRUE(owner.ok()) << owner.error().message;
  auto memory = (*owner->executable).allocate(2 * kBytes, "a test");
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  const std::byte* device = memory->get();
  EXPECT_EQ(bytes_with(device, host.data()), all - kBytes);
  EXPECT_EQ(bytes_with(host.data(), device), all);
  EXPECT_EQ(bytes_with(device + sizeof(float), host.data()), all) << "misaligned";
}

TEST_F(CudaDriver, SaysHowManyBytesItLacksAndForWhat) {
  ASSERT_EQ(message(open()), "no error");
  std::set<std::string> messages;
  for (int failing = 1;; ++failing) {
    fake().calls = 0;
    fake().failing_call = failing;
    auto made = compile(false);
    if (made.ok()) break;
    messages.insert(made.error().message);
    ASSERT_LT(failing, 1000) << made.error().message;
  }
  const std::string arena = "the GPU has no 1536 bytes left for the arena";
  EXPECT_EQ(messages.count(arena), 1u) << testing::PrintToString(messages);
}

}  // namespace
}  // namespace lathe
