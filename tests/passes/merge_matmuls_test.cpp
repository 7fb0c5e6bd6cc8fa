// Weights that are kept twice: what is too large for the cases of merge_matmuls.lathe, which run.
#include <gtest/gtest.h>

#include <string>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

// Two pairs of products of few rows: one whose weights are of few megabytes, and one of many.
constexpr const char* kText = R"(
func @main(%x: bf16[1, 4096], %y: bf16[1, 512]) -> bf16[1, 4096], bf16[1, 512] {
  %w = constant() {name = "w", dtype = bf16, shape = [4096, 4096]}
  %v = constant() {name = "v", dtype = bf16, shape = [4096, 4096]}
  %u = constant() {name = "u", dtype = bf16, shape = [512, 512]}
  %t = constant() {name = "t", dtype = bf16, shape = [512, 512]}
  %0 = matmul(%x, %w)
  %1 = matmul(%x, %v)
  %2 = mul(%0, %1)
  %3 = matmul(%y, %u)
  %4 = matmul(%y, %t)
  %5 = mul(%3, %4)
  return %2, %5
}
)";

TEST(MergeMatmuls, KeepsFewWeightsTwice) {
  Result<Module> module = parse(kText, builtin_registry());
  ASSERT_TRUE(module.ok()) << module.error().message;
  Unit unit{std::move(*module), {}};
  PassContext context{builtin_registry(), *find_target("sm_90")};
  const auto report = run_pipeline(unit, *parse_pipeline("merge_matmuls,dce"), {}, context);
  ASSERT_TRUE(report.ok()) << report.error().message;
  const std::string text = print(unit.module);
  EXPECT_NE(text.find("matmul(%y, %permute"), std::string::npos) << text;
  EXPECT_NE(text.find("matmul(%x, %w)"), std::string::npos) << text;
  const std::vector<Refusal>& refusals = report->passes.front().refusals;
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].message,
            "'0' stays apart from products of the same rows: its weights would be kept twice");
}

}  // namespace
}  // namespace lathe
