// Every kind of kernel: its example by each target that takes it, and every graph of
// template_graphs.h with each of its regions made by every kind in turn, against the interpreter.
#include <gtest/gtest.h>

#include "backends/interp/backend.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"
#include "passes/choices/override.h"
#include "passes/lowering/kernel_def.h"
#include "tests/backends/deep_graphs.h"
#include "tests/backends/graph_inputs.h"
#include "tests/backends/layout_graphs.h"
#include "tests/backends/library_graphs.h"
#include "tests/backends/output_graphs.h"
#include "tests/backends/pair_graphs.h"
#include "tests/backends/place_graphs.h"
#include "tests/backends/pool_graphs.h"
#include "tests/backends/reduction_graphs.h"
#include "tests/backends/template_graphs.h"

namespace lathe {
namespace {

class Case {
 public:
  explicit Case(const std::string& text) {
    LocTable locs;
    auto loaded = load_text(text, "graph.lathe", {}, locs);
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : render(loaded.error(), locs));
    if (!loaded.ok()) return;
    model_ = *std::move(loaded);
    inputs_ = inputs_of(model_.module);
    auto functional = reference_module(model_);
    EXPECT_TRUE(functional.ok());
    if (!functional.ok()) return;
    auto reference = evaluate_reference(*functional, inputs_, {});
    EXPECT_TRUE(reference.ok());
    if (reference.ok()) reference_ = *std::move(reference);
  }

  // What choose_kernels found for each region of the graph.
  std::vector<KernelChoice> choices(const Target& target) {
    BuildFailure failure;
    auto lowered = lower(model_, target, {.threads = 1}, failure);
    EXPECT_TRUE(lowered.ok()) << (lowered.ok() ? "" : lowered.error().message);
    std::vector<KernelChoice> found;
    if (!lowered.ok()) return found;
    for (const PassRecord& record : lowered->report.passes)
      found.insert(found.end(), record.choices.begin(), record.choices.end());
    return found;
  }

  void expect_agreement(Backend& backend, const std::string& choice) {
    CompileRequest request{.threads = 1};
    if (!choice.empty()) {
      auto parsed = parse_override(choice, Loc::unknown());
      ASSERT_TRUE(parsed.ok()) << parsed.error().message;
      request.force.push_back(*std::move(parsed));
    }
    BuildFailure failure;
    auto built = build(model_, backend, request, failure);
    ASSERT_TRUE(built.ok()) << built.error().message;
    auto call = CallBuffers::create(built->program(), inputs_, model_.weights());
    ASSERT_TRUE(call.ok()) << call.error().message;
    const Status ran = call->run(*built->executable);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    auto outputs = call->outputs();
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const Agreement agreement = compare(*outputs, reference_);
    EXPECT_TRUE(agreement.passed) << agreement.why;
    num_launches_ = built->program().steps.size();
  }
  // Of the program that agreed last.
  size_t num_launches() const { return num_launches_; }

 private:
  Model model_;
  std::vector<Tensor> inputs_;
  Reference reference_;
  size_t num_launches_ = 0;
};

class KernelExample : public testing::TestWithParam<std::string> {};

TEST_P(KernelExample, IsMadeByEveryTargetThatTakesIt) {
  const std::vector<KernelDef> kinds = all_kernels();
  const KernelDef* kind = find_kernel(kinds, GetParam());
  ASSERT_NE(kind, nullptr);
  EXPECT_FALSE(kind->summary.empty());
  ASSERT_FALSE(kind->example.empty()) << "a kind needs an example";
  Case example(kind->example);
  int num_made = 0;
  for (const std::string& isa : target_names()) {
    SCOPED_TRACE(isa);
    const Target& target = *find_target(isa);
    std::string region;  // that the kind can make
    for (const KernelChoice& choice : example.choices(target))
      for (const KernelCandidate& candidate : choice.candidates)
        if (candidate.plan.kind == kind->name && candidate.why_not.empty()) region = choice.region;
    EXPECT_TRUE(!region.empty() || isa != kind->isa);
    if (region.empty()) continue;
    ++num_made;
    const std::string choice = "kernel " + region + " = " + kind->name;
    example.expect_agreement(*make_interpreter(target), choice);
    if (auto backend = make_backend(target.name, isa); backend.ok() && target.name == "cpu")
      example.expect_agreement(**backend, choice);
  }
  EXPECT_GT(num_made, 0);
}

class ForcedGraphs : public testing::TestWithParam<TemplateGraph> {};

TEST_P(ForcedGraphs, AgreeWhateverKindMakesThem) {
  Case graph(GetParam().text);
  int num_made = 0;
  for (const char* isa : {"avx512_bf16", "avx512", "avx2", "simd128", "sm_90"}) {
    const Target& target = *find_target(isa);
    auto native = make_backend(target.name, isa);
    std::unique_ptr<Backend> backend =
        native.ok() && target.name == "cpu" ? *std::move(native) : make_interpreter(target);
    for (const KernelChoice& choice : graph.choices(target)) {
      for (const KernelCandidate& candidate : choice.candidates) {
        if (!candidate.why_not.empty()) continue;
        SCOPED_TRACE(std::string(isa) + " " + choice.region + " " + candidate.plan.kind);
        graph.expect_agreement(*backend, "kernel " + choice.region + " = " + candidate.plan.kind);
        ++num_made;
      }
    }
  }
  EXPECT_GE(num_made, 4);  // plain loops at least, by each
}

// Attention whose scores a small cache has no room for goes in parts, of which the last may overlap
// the one before it.
TEST(LibraryAttention, OfManyScoresGoesInParts) {
  Target target = *find_target("sm_90");
  target.l2_bytes = 16 << 10;
  const char* mask =
      "func @main(%q: f32[2, 3, 200, 8], %k: f32[2, 3, 50, 8], "
      "%v: f32[2, 3, 50, 8], %m: f32[2, 1, 200, 50]) -> f32[2, 3, 200, 8] {\n"
      "  %a = attention(%q, %k, %v, %m)\n  return %a\n}";
  const char* causal =
      "func @main(%q: f32[1, 6, 131, 8], %k: f32[1, 2, 131, 8], "
      "%v: f32[1, 2, 131, 5]) -> f32[1, 6, 131, 5] {\n"
      "  %a = attention(%q, %k, %v) {is_causal = true, enable_gqa = true}\n  return %a\n}";
  const char* columns =
      "func @main(%q: f64[7, 9, 3], %k: f64[7, 301, 3], %v: f64[7, 301, 3], "
      "%m: bool[7, 1, 301]) -> f64[7, 9, 3] {\n"
      "  %a = attention(%q, %k, %v, %m)\n  return %a\n}";
  for (const char* text : {mask, causal, columns}) {
    SCOPED_TRACE(text);
    Case graph(text);
    graph.expect_agreement(*make_interpreter(target), "kernel a = library_attention");
    EXPECT_GT(graph.num_launches(), 5u);
  }
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const KernelDef& kind : all_kernels()) names.push_back(kind.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Kinds, KernelExample, testing::ValuesIn(kernel_names()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Graphs, ForcedGraphs, testing::ValuesIn(kTemplateGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Deep, ForcedGraphs, testing::ValuesIn(kDeepGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Pairs, ForcedGraphs, testing::ValuesIn(kPairGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Places, ForcedGraphs, testing::ValuesIn(kPlaceGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Pools, ForcedGraphs, testing::ValuesIn(kPoolGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Libraries, ForcedGraphs, testing::ValuesIn(kLibraryGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Layouts, ForcedGraphs, testing::ValuesIn(kLayoutGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Outputs, ForcedGraphs, testing::ValuesIn(kOutputGraphs),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(Reductions, ForcedGraphs, testing::ValuesIn(kReductionGraphs),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace lathe
