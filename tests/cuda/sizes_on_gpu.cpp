// One program for every size, on the GPU of this machine and in the interpreter that stands for it:
// sizes in random order, again and again, against what the graph means at each. Needs no LLVM, so
// that it travels alone; on_gpu.sh runs it. LATHE_SIZED_MODELS names exports (.pt2, with ":"
// between) to be run the same way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <sstream>

#include "backends/cuda/device/backend.h"
#include "backends/interp/backend.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "ir/program/binding.h"
#include "tests/program/sizes.h"

namespace lathe {
namespace {

struct SizedGraph {
  const char* name;
  std::vector<Sizes> sizes;  // the smallest first
  const char* text;
};

const SizedGraph kGraphs[] = {
    {"Linear", one({1, 2, 3, 15, 16, 17, 64, 127, 128, 129, 1021}), R"(
dim s0 in [1, 1024] hint 32
func @main(%x: f32[s0, 67]) -> f32[s0, 90] {
  %w = constant() {name = "w", dtype = f32, shape = [67, 90]}
  %b = constant() {name = "b", dtype = f32, shape = [90]}
  %0 = matmul(%x, %w)
  %1 = add(%0, %b)
  %2 = relu(%1)
  return %2
})"},
    {"LinearOfNoKnownEnd", two({{0, 4}, {1, 1}, {2, 3}, {3, 31}, {5, 128}, {17, 129}, {8, 640}}),
     R"(
dim s0 in [0, inf] hint 2
dim s1 in [1, inf] hint 32
func @main(%x: bf16[s0, s1, 64], %p: bf16[s1, 96]) -> bf16[s0, s1, 96] {
  %w = constant() {name = "w", dtype = bf16, shape = [64, 96]}
  %0 = matmul(%x, %w)
  %1 = add(%0, %p)
  return %1
})"},
    {"Norms", two({{1, 1}, {2, 3}, {3, 31}, {4, 32}, {5, 33}, {7, 257}, {2, 1025}}), R"(
dim s0 in [1, 64] hint 2
dim s1 in [1, inf] hint 32
func @main(%x: f32[s0, s1, 48], %y: f32[s0, s1]) -> f32[s0, s1, 48], f32[s0, s1], f32[s1] {
  %0 = layer_norm(%x) {normalized_shape = [48]}
  %1 = softmax(%y) {dim = -1}
  %2 = sum(%y) {dim = [0], keepdim = false}
  return %0, %1, %2
})"},
    {"Scores", two({{1, 1}, {1, 2}, {2, 3}, {3, 16}, {2, 31}, {3, 33}, {4, 100}}), R"(
dim s0 in [1, 4] hint 2
dim s1 in [1, 100] hint 32
func @main(%q: f32[s0, s1, 3, 20], %k: f32[s0, s1, 3, 20]) -> f32[s0, 3, s1, s1] {
  %0 = permute(%q) {dims = [0, 2, 1, 3]}
  %1 = permute(%k) {dims = [0, 2, 3, 1]}
  %2 = matmul(%0, %1)
  return %2
})"},
    {"Attention", two({{1, 1}, {1, 2}, {2, 3}, {1, 17}, {3, 64}, {2, 127}, {1, 128}, {2, 129}}), R"(
dim s0 in [1, 4] hint 2
dim s1 in [1, 512] hint 32
func @main(%q: f16[s0, 4, s1, 64], %k: f16[s0, 4, s1, 64], %v: f16[s0, 4, s1, 64])
    -> f16[s0, 4, s1, 64] {
  %0 = attention(%q, %k, %v) {is_causal = true}
  return %0
})"},
    {"MaskedAttention", two({{1, 1}, {2, 9}, {3, 33}, {4, 2}, {17, 31}, {40, 64}}), R"(
dim s0 in [1, inf] hint 16
dim s1 in [1, inf] hint 32
func @main(%q: f32[2, 2, s0, 16], %k: f32[2, 2, s1, 16], %v: f32[2, 2, s1, 16],
           %m: f32[s0, s1]) -> f32[2, 2, s0, 16] {
  %0 = attention(%q, %k, %v, %m)
  return %0
})"},
    {"Images", two({{1, 3}, {2, 4}, {1, 5}, {2, 14}, {3, 31}, {2, 64}}), R"(
dim s0 in [1, 4] hint 2
dim s1 in [3, 64] hint 16
func @main(%x: f16[s0, 16, s1, 9]) -> f16[s0, 32, (s1 + 1)//2, 5] {
  %w = constant() {name = "w", dtype = f16, shape = [32, 16, 3, 3]}
  %b = constant() {name = "bias", dtype = f16, shape = [32]}
  %0 = convolution(%x, %w, %b) {stride = [2, 2], padding = [1, 1]}
  %1 = relu(%0)
  return %1
})"},
};

enum class Where : uint8_t { interpreter, gpu };

struct Case {
  Where where;
  std::string mode;
  std::string name;
  const SizedGraph* graph = nullptr;  // null: the export at `path`
  std::string path = {};
};

Result<std::unique_ptr<Backend>> backend_of(Where where) {
  if (where == Where::gpu) return make_cuda_backend("");
  return make_interpreter(*find_target("sm_90"));
}

// What an export is run at: its hint, the ends of ranges where those are small, and some between.
std::vector<Sizes> sizes_of(const Model& model, std::mt19937& random) {
  constexpr int64_t kMost = 40;
  std::vector<Sizes> sizes = {model.dims};
  for (int i = 0; i < 6; ++i) {
    Sizes at;
    for (const auto& [symbol, range] : model.module.dims) {
      const int64_t least = range.min.value_or(1), most = range.max.value_or(kMost);
      std::uniform_int_distribution<int64_t> draw(least, std::max(least, std::min(most, kMost)));
      at[symbol] = i == 0 ? std::max<int64_t>(least, 1) : draw(random);
    }
    sizes.push_back(std::move(at));
  }
  return sizes;
}

class Runs {
 public:
  Runs(Model& model, const Build& built, bool uses_tf32)
      : model_(model), built_(built), uses_tf32_(uses_tf32) {}

  void at(const Sizes& sizes) {
    const std::string what = text(sizes);
    SCOPED_TRACE(what);
    model_.dims = sizes;
    auto inputs = random_inputs(model_, 1);
    ASSERT_TRUE(inputs.ok()) << inputs.error().message;
    if (references_.count(what) == 0) {
      auto functional = reference_module(model_);
      ASSERT_TRUE(functional.ok()) << functional.error().message;
      auto made =
          evaluate_reference(*functional, *inputs, {.dims = sizes, .uses_tf32 = uses_tf32_});
      ASSERT_TRUE(made.ok()) << made.error().message;
      references_.emplace(what, *std::move(made));
    }
    auto ordered = ordered_sizes(*built_.symbolic, sizes);
    ASSERT_TRUE(ordered.ok());
    const auto start = std::chrono::steady_clock::now();
    const Status bound = built_.executable->bind(*ordered);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    (is_seen_[what] ? again_us_ : first_us_).push_back(took.count());
    is_seen_[what] = true;
    auto program = instantiate(*built_.symbolic, sizes);
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto call = CallBuffers::create(*program, *inputs, model_.weights());
    ASSERT_TRUE(call.ok()) << call.error().message;
    const Status ran = call->run(*built_.executable);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    auto outputs = call->outputs();
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const Agreement agreement = compare(*outputs, references_.at(what));
    EXPECT_TRUE(agreement.passed) << agreement.why;
  }

  // Microseconds of binds of sizes never seen and of those seen, and what had to go.
  std::string summary() {
    std::string line =
        fmt::format("first {} us, again {} us", median(first_us_), median(again_us_));
    for (const auto& [reason, count] : built_.executable->stats().drops)
      line += fmt::format("; {} x {}", count, reason);
    return line;
  }

 private:
  static std::string text(const Sizes& sizes) {
    std::string text;
    for (const auto& [symbol, size] : sizes) text += fmt::format("{} = {} ", symbol, size);
    return text;
  }
  static std::string median(std::vector<double>& values) {
    if (values.empty()) return "-";
    std::sort(values.begin(), values.end());
    return fmt::format("{:.1f} (most {:.1f})", values[values.size() / 2], values.back());
  }

  Model& model_;
  const Build& built_;
  bool uses_tf32_;
  std::map<std::string, Reference> references_;
  std::map<std::string, bool> is_seen_;
  std::vector<double> first_us_, again_us_;
};

class SizedProgram : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    static const Status is_there = check_cuda();
    if (GetParam().where == Where::gpu && !is_there.ok()) GTEST_SKIP() << is_there.error().message;
    const Case& test = GetParam();
    LocTable locs;
    auto model = test.graph ? load_text(test.graph->text, test.name, {.random_weights = 1}, locs)
                            : load_model(test.path, {}, locs);
    ASSERT_TRUE(model.ok()) << render(model.error(), locs);
    model_ = *std::move(model);
    if (test.graph) model_.dims = test.graph->sizes.back();
    auto backend = backend_of(test.where);
    ASSERT_TRUE(backend.ok()) << backend.error().message;
    backend_ = *std::move(backend);
    BuildFailure failure;
    auto built =
        build(model_, *backend_, {.dynamic = true, .threads = 1, .mode = test.mode}, failure);
    ASSERT_TRUE(built.ok()) << built.error().message;
    ASSERT_TRUE(built->symbolic.has_value());
    built_ = *std::move(built);
    runs_ = std::make_unique<Runs>(model_, built_, backend_->target().uses_tf32);
  }

  Model model_;
  std::unique_ptr<Backend> backend_;
  Build built_;
  std::unique_ptr<Runs> runs_;
};

// Each in turn, the smallest first, so that memory grows; then in random order, and from the
// largest to the smallest and back.
TEST_P(SizedProgram, IsRightAtEverySizeInAnyOrder) {
  std::mt19937 random(7);
  const std::vector<Sizes> sizes =
      GetParam().graph ? GetParam().graph->sizes : sizes_of(model_, random);
  for (const Sizes& at : sizes) runs_->at(at);
  std::uniform_int_distribution<size_t> draw(0, sizes.size() - 1);
  for (int i = 0; i < 12 && !HasFatalFailure(); ++i) {
    const Sizes &a = sizes[draw(random)], &b = sizes[draw(random)];
    for (const Sizes* at : {&a, &b, &a}) runs_->at(*at);
  }
  for (const Sizes* at : {&sizes.back(), &sizes.front(), &sizes.back()}) runs_->at(*at);
  std::printf("%s: bind %s\n", GetParam().name.c_str(), runs_->summary().c_str());
}

// More sizes than are kept, forwards, so that each is forgotten before it comes again.
TEST_P(SizedProgram, ForgetsSizesAndIsRightAtThemAgain) {
  if (GetParam().name != "Linear") return;
  constexpr int64_t kMoreThanAreKept = 40;
  for (int round = 0; round < 2; ++round)
    for (int64_t size = 1; size <= kMoreThanAreKept; ++size) runs_->at({{"s0", size}});
  std::printf("%s: bind %s\n", GetParam().name.c_str(), runs_->summary().c_str());
  if (GetParam().where == Where::gpu && GetParam().mode == "reduce-overhead")
    EXPECT_FALSE(built_.executable->stats().drops.empty());
}

TEST_P(SizedProgram, RefusesOthersAndGoesOn) {
  if (GetParam().name != "Linear") return;
  runs_->at({{"s0", 3}});
  EXPECT_FALSE(built_.executable->bind(std::vector<int64_t>{1025}).ok());
  EXPECT_FALSE(built_.executable->bind(std::vector<int64_t>{0}).ok());
  runs_->at({{"s0", 3}});
}

std::vector<Case> cases(Where where) {
  std::vector<Case> list;
  for (const char* mode : {"default", "reduce-overhead"}) {
    if (where == Where::interpreter && mode != std::string("default")) continue;
    for (const SizedGraph& graph : kGraphs) list.push_back({where, mode, graph.name, &graph});
    const char* paths = std::getenv("LATHE_SIZED_MODELS");
    std::stringstream models(paths ? paths : "");
    for (std::string path; std::getline(models, path, ':');)
      list.push_back({where, mode, fmt::format("Export{}", list.size()), nullptr, path});
  }
  return list;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return info.param.name + (info.param.mode == "default" ? "" : "_Recorded");
}

INSTANTIATE_TEST_SUITE_P(Interpreter, SizedProgram, testing::ValuesIn(cases(Where::interpreter)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, SizedProgram, testing::ValuesIn(cases(Where::gpu)), name_of);

}  // namespace
}  // namespace lathe
