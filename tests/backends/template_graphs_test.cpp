// The graphs of template_graphs.h, compiled for each target and run, against the interpreter. And
// strictly, with the same bits on each.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/interp/backend.h"
#include "backends/wasm/node/backend.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "ir/loop/text.h"
#include "tests/backends/graph_inputs.h"
#include "tests/backends/library_graphs.h"
#include "tests/backends/output_graphs.h"
#include "tests/backends/pair_graphs.h"
#include "tests/backends/place_graphs.h"
#include "tests/backends/pool_graphs.h"
#include "tests/backends/reduction_graphs.h"
#include "tests/backends/scan_graphs.h"
#include "tests/backends/template_graphs.h"

namespace lathe {
namespace {

struct Machine {
  const char* target;
  const char* isa;
};
constexpr Machine kMachines[] = {{"cpu", "avx512_bf16"},
                                 {"cpu", "avx512"},
                                 {"cpu", "avx2"},
                                 {"wasm", "relaxed"},
                                 {"wasm", "simd128"}};

// Null where this machine cannot run it.
Backend* backend_for(const Machine& machine) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  auto [entry, is_new] = made.try_emplace(std::string(machine.target) + machine.isa);
  if (!is_new) return entry->second.get();
  if (std::string_view(machine.target) == "wasm" && !check_wasm(machine.isa).ok()) return nullptr;
  auto backend = make_backend(machine.target, machine.isa);
  if (backend.ok()) entry->second = *std::move(backend);
  return entry->second.get();
}

class TemplateGraphs : public testing::TestWithParam<TemplateGraph> {
 protected:
  void SetUp() override {
    LocTable locs;
    auto loaded = load_text(GetParam().text, "graph.lathe", {}, locs);
    ASSERT_TRUE(loaded.ok()) << render(loaded.error(), locs);
    model_ = *std::move(loaded);
    inputs_ = inputs_of(model_.module);
  }

  std::vector<Tensor> run(Backend& backend, Numerics numerics) {
    BuildFailure failure;
    auto built = build(model_, backend, {.threads = 1, .numerics = numerics}, failure);
    EXPECT_TRUE(built.ok()) << built.error().message;
    if (!built.ok()) return {};
    auto call = CallBuffers::create(built->program(), inputs_, model_.weights());
    EXPECT_TRUE(call.ok()) << call.error().message;
    if (!call.ok()) return {};
    const Status ran = call->run(*built->executable);
    EXPECT_TRUE(ran.ok()) << ran.error().message;
    auto outputs = call->outputs();
    EXPECT_TRUE(outputs.ok()) << outputs.error().message;
    return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
  }

  Model model_;
  std::vector<Tensor> inputs_;
};

TEST_P(TemplateGraphs, AgreesWithTheInterpreterOnEveryTarget) {
  auto functional = reference_module(model_);
  ASSERT_TRUE(functional.ok()) << functional.error().message;
  auto reference = evaluate_reference(*functional, inputs_, {});
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  int num_run = 0;
  const auto check = [&](Backend& backend) {
    const Agreement agreement = compare(run(backend, Numerics::standard), *reference);
    EXPECT_TRUE(agreement.passed) << agreement.why;
    ++num_run;
  };
  for (const Machine& machine : kMachines) {
    SCOPED_TRACE(std::string(machine.target) + " " + machine.isa);
    if (Backend* backend = backend_for(machine)) check(*backend);
  }
  for (const char* isa : {"avx512_bf16", "avx512", "simd128", "sm_90"}) {
    SCOPED_TRACE(std::string("evaluator of ") + isa);
    check(*make_interpreter(*find_target(isa)));
  }
  EXPECT_GE(num_run, 4);
}

TEST_P(TemplateGraphs, HasTheSameBitsOnEveryTarget) {
  std::vector<Tensor> expected;
  for (const Machine& machine : kMachines) {
    SCOPED_TRACE(std::string(machine.target) + " " + machine.isa);
    Backend* backend = backend_for(machine);
    if (backend == nullptr) continue;
    const std::vector<Tensor> got = run(*backend, Numerics::strict);
    ASSERT_FALSE(got.empty());
    for (size_t i = 0; i < expected.size(); ++i)
      for (int64_t at = 0; at < expected[i].num_elements(); ++at)
        ASSERT_EQ(got[i].get(at), expected[i].get(at)) << "output " << i << ", element " << at;
    if (expected.empty()) expected = got;
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, TemplateGraphs, testing::ValuesIn(kTemplateGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Pairs, TemplateGraphs, testing::ValuesIn(kPairGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Places, TemplateGraphs, testing::ValuesIn(kPlaceGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Pools, TemplateGraphs, testing::ValuesIn(kPoolGraphs),
                         [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(Libraries, TemplateGraphs, testing::ValuesIn(kLibraryGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Outputs, TemplateGraphs, testing::ValuesIn(kOutputGraphs),
                         [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(Reductions, TemplateGraphs, testing::ValuesIn(kReductionGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Scans, TemplateGraphs, testing::ValuesIn(kScanGraphs),
                         [](const auto& test) { return std::string(test.param.name); });

// How many kernels multiply pairs.
int64_t count_paired(const char* graph, const char* isa, Numerics numerics) {
  LocTable locs;
  const auto model = load_text(graph, "pairs.lathe", {}, locs);
  EXPECT_TRUE(model.ok());
  BuildFailure failure;
  const auto built =
      build(*model, *make_interpreter(*find_target(isa)), {.numerics = numerics}, failure);
  EXPECT_TRUE(built.ok()) << built.error().message;
  const auto& kernels = built->program().kernels;
  return std::count_if(kernels.begin(), kernels.end(), [](const loop::Kernel& kernel) {
    return loop::print(kernel).find("pair_dot") != std::string::npos;
  });
}

TEST(Pairs, AreMultipliedWhereATargetCanAndMay) {
  for (const TemplateGraph& graph : kPairGraphs) {
    SCOPED_TRACE(graph.name);
    EXPECT_EQ(count_paired(graph.text, "avx512", Numerics::standard), 0);
    EXPECT_EQ(count_paired(graph.text, "avx512_bf16", Numerics::strict), 0);
  }
  for (const TemplateGraph& graph : {kPairGraphs[0], kPairGraphs[1], kPairGraphs[2]})
    EXPECT_EQ(count_paired(graph.text, "avx512_bf16", Numerics::standard), 1) << graph.name;
}

// Each is a kernel to compile: 1600 of them would take longer than loops take to run.
TEST(TransposedConvolution, OfManyStridesIsNotAKernelForEach) {
  LocTable locs;
  auto model = load_text(R"(
func @main(%x: f32[1, 2, 3, 3], %w: f32[2, 3, 40, 40]) -> f32[1, 3, 120, 120] {
  %0 = convolution(%x, %w, none) {stride = [40, 40], transposed = true}
  return %0
})",
                         "strides.lathe", {}, locs);
  ASSERT_TRUE(model.ok()) << render(model.error(), locs);
  BuildFailure failure;
  const auto built = build(*model, *make_interpreter(*find_target("avx2")), {}, failure);
  ASSERT_TRUE(built.ok()) << built.error().message;
  EXPECT_LT(built->program().steps.size(), 10u);
}

}  // namespace
}  // namespace lathe
