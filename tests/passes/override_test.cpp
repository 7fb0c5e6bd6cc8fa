// Decisions that a person takes: read, carried out, or refused with the reason.
#include "passes/choices/override.h"

#include <gtest/gtest.h>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

std::string refusal(std::string_view text) {
  const Result<Override> read = parse_override(text, Loc::unknown());
  return read.ok() ? "" : read.error().message;
}

TEST(Override, IsOneOfThreeForms) {
  const Result<Override> kernel = parse_override(" kernel %add_1 = loops ", Loc::unknown());
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->node, "add_1");
  EXPECT_EQ(kernel->kernel, "loops");
  const Result<Override> tile = parse_override("tile add_1=9x3", Loc::unknown());
  ASSERT_TRUE(tile.ok());
  EXPECT_EQ(tile->tile, (std::vector<int64_t>{9, 3}));
  const Result<Override> keep = parse_override("keep add_1", Loc::unknown());
  ASSERT_TRUE(keep.ok());
  EXPECT_EQ(keep->what, Override::What::keep);
}

TEST(Override, LinesForAPlanReadBack) {
  const std::vector<Override> lines = overrides_for("add_1", "contraction", {9, 3});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(overrides_for("add_1", "loops", {}).size(), 1u);
  for (const Override& line : lines) {
    const Result<Override> read = parse_override(line.text, Loc::unknown());
    ASSERT_TRUE(read.ok()) << line.text;
    EXPECT_EQ(read->what, line.what);
    EXPECT_EQ(read->node, line.node);
    EXPECT_EQ(read->kernel, line.kernel);
    EXPECT_EQ(read->tile, line.tile);
  }
}

TEST(Override, SaysWhatIsExpectedInsteadOfAnythingElse) {
  EXPECT_NE(refusal("kernl x = loops").find("did you mean 'kernel'?"), std::string::npos);
  for (const char* text :
       {"", "kernel", "kernel x", "kernel x =", "keep", "keep x = y", "tile x", "tile x = 9",
        "tile x = 9x", "tile x = 0x3", "tile x = 9x3x1", "tile x = 99999999999999999999x1"})
    EXPECT_NE(refusal(text).find("expected"), std::string::npos) << text;
}

struct Outcome {
  std::string text;   // of the graph
  std::string error;  // of the pipeline
};

Outcome run(const std::string& passes, const std::vector<std::string>& decisions) {
  const char* const kGraph = R"(
func @main(%x: f32[40, 64], %w: f32[64, 48], %b: f32[48]) -> f32[40, 48] {
  %product = matmul(%x, %w)
  %sum = add(%product, %b)
  %result = exp(%sum)
  return %result
}
)";
  Unit unit;
  Result<Module> module = parse(kGraph, builtin_registry());
  EXPECT_TRUE(module.ok());
  if (module.ok()) unit.module = *std::move(module);
  PassContext context{.ops = builtin_registry(), .target = *find_target("avx2")};
  for (const std::string& decision : decisions) {
    Result<Override> read = parse_override(decision, Loc::unknown());
    EXPECT_TRUE(read.ok()) << decision;
    if (read.ok()) context.overrides.push_back(*std::move(read));
  }
  const Result<Pipeline> pipeline = parse_pipeline(passes);
  EXPECT_TRUE(pipeline.ok());
  if (!pipeline.ok()) return {};
  const Result<PipelineReport> report = run_pipeline(unit, *pipeline, {}, context);
  return {print(unit.module), report.ok() ? "" : report.error().message};
}

constexpr const char* kPasses = "fuse_epilogue,fuse_pointwise,choose_kernels";

TEST(Override, ThatCannotBeCarriedOutIsAnErrorWithTheReason) {
  const auto error = [](const std::string& decision) { return run(kPasses, {decision}).error; };
  EXPECT_NE(error("kernel resul = loops").find("did you mean 'result'?"), std::string::npos);
  EXPECT_NE(error("kernel result = lops").find("did you mean 'loops'?"), std::string::npos);
  EXPECT_NE(error("kernel result = scan").find("logcumsumexp, not matmul"), std::string::npos);
  EXPECT_NE(error("tile result = 9x9").find("does not fit 16 registers"), std::string::npos);
  EXPECT_NE(error("keep resul").find("did you mean 'result'?"), std::string::npos);
}

TEST(Override, ThatNoStepIsForIsAnError) {
  const Outcome outcome = run("fuse_epilogue", {"kernel result = loops"});
  EXPECT_NE(outcome.error.find("the pipeline has no choose_kernels"), std::string::npos)
      << outcome.error;
}

}  // namespace
}  // namespace lathe
