// Programs on the CPU: binding of buffers, init, threads, staging, errors; against the interpreter.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "backends/cpu/backend.h"
#include "backends/interp/run_program.h"
#include "backends/wasm/node/backend.h"
#include "ir/loop/pool.h"

namespace lathe {
namespace {

using namespace loop;

constexpr int64_t kSize = 1000;  // not a multiple of the lanes: tails are masked
constexpr int kLanes = 8;

// z[i] = a[i] * b[i] + scratch copy of b, over chunks of one vector.
Kernel make_kernel(const char* name) {
  Kernel kernel;
  kernel.name = name;
  kernel.pool = std::make_shared<Pool>();
  Pool& pool = *kernel.pool;
  BufferRef a = kernel.add_buffer({"a", DType::f32, kSize});
  BufferRef b = kernel.add_buffer({"b", DType::f32, kSize});
  BufferRef z = kernel.add_buffer({"z", DType::f32, kSize, Space::global, true});
  BufferRef s = kernel.add_buffer({"s", DType::f32, kLanes, Space::scratch, true});
  constexpr int64_t kChunks = (kSize + kLanes - 1) / kLanes;
  Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, kChunks - 1});
  Expr at = pool.var(i) * pool.integer(kLanes);
  Expr mask = lt(pool.ramp(at, 1, kLanes), splat(pool.integer(kSize), kLanes));
  Expr x = pool.load(a, at, DType::f32, kLanes, mask);
  Expr y = pool.load(b, at, DType::f32, kLanes, mask);
  Expr saved = pool.load(s, pool.integer(0), DType::f32, kLanes);
  Block body = {{Store{s, pool.integer(0), y, {}}}, {Store{z, at, x * y + saved, mask}}};
  kernel.body.push_back(
      {For{i, pool.integer(0), pool.integer(kChunks), 1, LoopKind::parallel, body}});
  return kernel;
}

TensorType vector_type() { return {DType::f32, {Dim(kSize)}}; }

ProgramBuffer make_buffer(const char* name, BufferKind kind, int64_t offset = -1) {
  ProgramBuffer buffer{name, vector_type(), kSize * 4, kind, offset};
  if (kind == BufferKind::weight) buffer.weight = name;
  if (kind == BufferKind::constant) buffer.bytes.assign(kSize * 4, std::byte{0});
  return buffer;
}

enum Id : int { kX, kWeight, kPacked, kConstant, kPartial, kHidden, kCopy, kOut };

// init: packed = weight*weight + weight. steps: hidden = x*packed + packed; out = hidden*x + x;
// copy = out. Outputs: out, copy, x, out again.
Program make_program() {
  Program program;
  program.name = "test";
  program.kernels = {make_kernel("mul_add")};
  program.buffers = {make_buffer("x", BufferKind::input),
                     make_buffer("w", BufferKind::weight),
                     make_buffer("packed", BufferKind::persistent),
                     make_buffer("c", BufferKind::constant),
                     make_buffer("partial", BufferKind::temporary),
                     make_buffer("hidden", BufferKind::temporary, 64),
                     make_buffer("copy", BufferKind::output),
                     make_buffer("out", BufferKind::output)};
  auto& constant = program.buffers[kConstant].bytes;
  for (int64_t i = 0; i < kSize; ++i) {
    float value = static_cast<float>(i % 5);
    std::memcpy(&constant[static_cast<size_t>(4 * i)], &value, 4);
  }
  program.inputs = {kX};
  program.outputs = {kOut, kCopy, kX, kOut};
  program.init = {{KernelLaunch{0, {kWeight, kWeight, kPacked}}, "pack"}};
  program.steps = {{KernelLaunch{0, {kX, kPacked, kPartial}}, "first"},
                   {KernelLaunch{0, {kPartial, kConstant, kHidden}}, "second"},
                   {KernelLaunch{0, {kHidden, kX, kOut}}, "third"},
                   {CopyLaunch{kOut, kCopy}, "copy"}};
  program.arena_bytes = 64 + 4032;
  return program;
}

// The parameter is a target.
class ExecutableTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    is_wasm_ = GetParam() == std::string("wasm");
    if (const Status runs = is_wasm_ ? check_wasm("") : Status(Ok{}); !runs.ok())
      GTEST_SKIP() << runs.error().message;
    auto made = is_wasm_ ? make_wasm_backend() : make_cpu_backend();
    ASSERT_TRUE(made.ok()) << made.error().message;
    backend_ = std::move(*made);
    std::iota(weight_.begin(), weight_.end(), -100.f);
    std::iota(x_.begin(), x_.end(), -7.f);
  }

  CompileOptions options(int threads) {
    CompileOptions o;
    o.threads = threads;
    o.weight = [this](const std::string& name) -> Result<BufferView> {
      EXPECT_EQ(name, "w");
      return view(weight_);
    };
    o.release_weight = [this](const std::string&) { ++num_released_; };
    return o;
  }
  static bool is_aligned(const float* p) { return reinterpret_cast<uintptr_t>(p) % 64 == 0; }
  static BufferView view(std::vector<float>& floats) {
    return {reinterpret_cast<std::byte*>(floats.data()), floats.size() * 4};
  }

  std::vector<std::vector<float>> interpret(const Program& program) {
    std::vector<std::vector<float>> results(program.outputs.size(), std::vector<float>(kSize));
    std::vector<BufferView> outputs;
    for (auto& result : results) outputs.push_back(view(result));
    BufferView inputs[] = {view(x_)};
    auto status = run_program_interpreted(program, options(1), inputs, outputs);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return results;
  }

  std::unique_ptr<Backend> backend_;
  bool is_wasm_ = false;
  std::vector<float> weight_ = std::vector<float>(kSize), x_ = std::vector<float>(kSize);
  int num_released_ = 0;
};

TEST_P(ExecutableTest, MatchesTheInterpreterOnAnyNumberOfThreads) {
  Program program = make_program();
  auto expected = interpret(program);
  EXPECT_NE(expected[0], expected[2]);
  for (int threads = 1; threads <= 4; ++threads) {
    num_released_ = 0;
    auto executable = backend_->compile(program, options(threads));
    ASSERT_TRUE(executable.ok()) << executable.error().message;
    EXPECT_EQ(num_released_, 1);
    EXPECT_GE((*executable)->stats().persistent_bytes, 2 * kSize * 4);
    EXPECT_GE((*executable)->stats().arena_bytes, 2 * kSize * 4);
    for (int call = 0; call < 20; ++call) {
      std::vector<std::vector<float>> results(4, std::vector<float>(kSize));
      std::vector<BufferView> outputs;
      for (auto& result : results) outputs.push_back(view(result));
      BufferView inputs[] = {view(x_)};
      auto status = (*executable)->run(inputs, outputs);
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(results, expected) << threads << " threads";
    }
  }
}

TEST_P(ExecutableTest, SeveralExecutablesRunAtOnce) {
  Program program = make_program();
  auto expected = interpret(program);
  std::vector<std::unique_ptr<Executable>> executables;
  for (int i = 0; i < 3; ++i) {
    auto executable = backend_->compile(program, options(2));
    ASSERT_TRUE(executable.ok()) << executable.error().message;
    executables.push_back(std::move(*executable));
  }
  std::vector<std::thread> callers;
  for (auto& executable : executables)
    callers.emplace_back([&] {
      for (int call = 0; call < 100; ++call) {
        std::vector<std::vector<float>> results(4, std::vector<float>(kSize));
        std::vector<BufferView> outputs;
        for (auto& result : results) outputs.push_back(view(result));
        BufferView inputs[] = {view(x_)};
        EXPECT_TRUE(executable->run(inputs, outputs).ok());
        EXPECT_EQ(results, expected);
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST_P(ExecutableTest, AcceptsMisalignedAndOverlappingViews) {
  Program program = make_program();
  auto expected = interpret(program);
  auto executable = backend_->compile(program, options(2));
  ASSERT_TRUE(executable.ok()) << executable.error().message;
  // One block: x at an odd offset; out over x; the others apart.
  std::vector<std::byte> block(kSize * 4 * 4 + 64);
  std::byte* base = block.data() + 3;
  std::memcpy(base, x_.data(), kSize * 4);
  BufferView inputs[] = {{base, kSize * 4}};
  BufferView outputs[] = {{base, kSize * 4},
                          {base + kSize * 4, kSize * 4},
                          {base + kSize * 8, kSize * 4},
                          {base + kSize * 12, kSize * 4}};
  ASSERT_TRUE((*executable)->run(inputs, outputs).ok());
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(std::memcmp(outputs[i].bytes, expected[i].data(), kSize * 4), 0) << i;
}

TEST_P(ExecutableTest, KernelsMayWorkInPlace) {
  Program program = make_program();
  program.steps[1] = {KernelLaunch{0, {kPartial, kConstant, kPartial}}, "in place"};
  program.steps[2] = {KernelLaunch{0, {kPartial, kX, kOut}}, "third"};
  auto executable = backend_->compile(program, options(1));
  ASSERT_TRUE(executable.ok()) << executable.error().message;
  std::vector<std::vector<float>> results(4, std::vector<float>(kSize));
  std::vector<BufferView> outputs;
  for (auto& result : results) outputs.push_back(view(result));
  BufferView inputs[] = {view(x_)};
  ASSERT_TRUE((*executable)->run(inputs, outputs).ok());
  EXPECT_EQ(results, interpret(make_program()));
}

TEST_P(ExecutableTest, StepsMayReadWeightsInPlace) {
  Program program = make_program();
  program.init.clear();
  program.steps[0] = {KernelLaunch{0, {kX, kWeight, kPartial}}, "first"};
  auto executable = backend_->compile(program, options(1));
  ASSERT_TRUE(executable.ok()) << executable.error().message;
  EXPECT_EQ(num_released_, !is_wasm_ && is_aligned(weight_.data()) ? 0 : 1);
  std::vector<std::vector<float>> results(4, std::vector<float>(kSize));
  std::vector<BufferView> outputs;
  for (auto& result : results) outputs.push_back(view(result));
  BufferView inputs[] = {view(x_)};
  ASSERT_TRUE((*executable)->run(inputs, outputs).ok());
  EXPECT_EQ(results, interpret(program));
}

TEST_P(ExecutableTest, TimesStepsWhenAsked) {
  auto executable = backend_->compile(make_program(), options(1));
  ASSERT_TRUE(executable.ok());
  std::vector<std::vector<float>> results(4, std::vector<float>(kSize));
  std::vector<BufferView> outputs;
  for (auto& result : results) outputs.push_back(view(result));
  BufferView inputs[] = {view(x_)};
  ASSERT_TRUE((*executable)->run(inputs, outputs).ok());
  EXPECT_TRUE((*executable)->step_seconds().empty());
  (*executable)->set_timing(true);
  ASSERT_TRUE((*executable)->run(inputs, outputs).ok());
  EXPECT_EQ((*executable)->step_seconds().size(), 4u);
}

TEST_P(ExecutableTest, WrongViewsAreErrors) {
  auto executable = backend_->compile(make_program(), options(1));
  ASSERT_TRUE(executable.ok());
  std::vector<BufferView> none;
  auto missing = (*executable)->run(none, none);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "program 'test' takes 1 inputs, got 0");
  BufferView small[] = {{view(x_).bytes, 12}};
  auto wrong = (*executable)->run(small, none);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, "bad-value");
  EXPECT_EQ(wrong.error().message, "input 0 'x' of program 'test' has 12 bytes, expected 4000");
}

TEST_P(ExecutableTest, MissingWeightsAreErrors) {
  CompileOptions no_source;
  auto executable = backend_->compile(make_program(), no_source);
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.error().code, "missing-weight");
  CompileOptions short_weight = options(1);
  weight_.resize(10);
  executable = backend_->compile(make_program(), short_weight);
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.error().message, "weight 'w' has 40 bytes, expected 4000");
}

TEST_P(ExecutableTest, OtherLaunchesAreUnavailable) {
  Program program = make_program();
  const CallTensor row{kX, 0, {1, 4}, {4, 1}}, column{kX, 0, {4, 1}, {1, 4}};
  program.steps.push_back(
      {LibraryLaunch{MatmulCall{row, column, {kOut, 0, {1, 1}, {1, 1}}, {}}}, "mm"});
  auto executable = backend_->compile(program, options(1));
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.error().code, "unavailable");
  EXPECT_NE(executable.error().message.find("'mm'"), std::string::npos);
}

TEST_P(ExecutableTest, EmitsTextAndNamesTheChoices) {
  Program program = make_program();
  for (const std::string& what : backend_->emits()) {
    auto text = backend_->emit(program, what);
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_FALSE(text->empty());
  }
  std::string first = backend_->emits().front();
  auto wrong = backend_->emit(program, first.substr(1));
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("did you mean '" + first + "'?"), std::string::npos)
      << wrong.error().message;
}

INSTANTIATE_TEST_SUITE_P(Targets, ExecutableTest, testing::Values("cpu", "wasm"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ProgramVerify, FindsWrongPrograms) {
  ASSERT_TRUE(verify(make_program()).ok());
  auto expect_error = [](auto change, const char* words) {
    Program program = make_program();
    change(program);
    auto status = verify(program);
    ASSERT_FALSE(status.ok()) << words;
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
  };
  auto kernel = [](Launch& launch) -> KernelLaunch& { return std::get<KernelLaunch>(launch.kind); };
  expect_error([&](Program& p) { kernel(p.steps[0]).kernel = 1; }, "kernel 1 does not exist");
  expect_error([&](Program& p) { kernel(p.steps[0]).buffers[0] = 99; }, "does not exist");
  expect_error([&](Program& p) { kernel(p.steps[0]).buffers.pop_back(); }, "has more buffers");
  expect_error([&](Program& p) { kernel(p.steps[0]).buffers.push_back(kX); }, "its launch 4");
  expect_error([&](Program& p) { kernel(p.steps[0]).buffers[2] = kX; }, "writes buffer %0");
  expect_error([&](Program& p) { kernel(p.steps[0]).buffers[0] = kHidden; },
               "before it is written");
  expect_error([&](Program& p) { p.steps.pop_back(); }, "is never written");
  expect_error([&](Program& p) { p.outputs.erase(p.outputs.begin() + 1); },
               "\"copy\" is written and no output of the program");
  expect_error([&](Program& p) { kernel(p.steps[0]).buffers[1] = kConstant; },
               "nobody reads what launch 0 'pack' of init writes");
  expect_error([&](Program& p) { p.outputs[0] = kPartial; }, "outlives");
  Program empty = make_program();
  empty.buffers.push_back(
      {.name = "none", .type = {DType::f32, {Dim(0)}}, .kind = BufferKind::output});
  empty.outputs.push_back(static_cast<BufferId>(empty.buffers.size()) - 1);
  EXPECT_TRUE(verify(empty).ok());
  expect_error([&](Program& p) { p.buffers[kHidden].offset = 32; }, "misaligned");
  expect_error([&](Program& p) { p.arena_bytes = 64; }, "outside its arena");
  expect_error([&](Program& p) { p.buffers[kHidden].num_bytes = 8; }, "less than its type");
  expect_error([&](Program& p) { p.kernels[0].buffers[0].size = kSize + 1; },
               "needs 1001 elements");
  expect_error([&](Program& p) { p.buffers[kPartial].offset = 0; }, "overlap while both are alive");
}

TEST(ProgramText, PrintsBuffersAndLaunches) {
  Program program = make_program();
  std::string text = print(program);
  EXPECT_EQ(program.num_kernels(), 4);
  EXPECT_NE(text.find("program @test(%0) -> (%7, %6, %0, %7)"), std::string::npos) << text;
  EXPECT_NE(text.find("%5 = temporary \"hidden\": f32[1000], 4000 bytes at 64"), std::string::npos)
      << text;
  EXPECT_NE(text.find("kernel @mul_add(%0, %2, %4) as \"first\"\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace lathe
