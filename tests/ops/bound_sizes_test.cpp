// Symbols that are bound to sizes with which an op does not run are errors, before anything reads
// beyond an operand.
#include <gtest/gtest.h>

#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"

namespace lathe {
namespace {

std::string error_of(std::string_view text, const std::vector<std::vector<int64_t>>& shapes) {
  const Result<Module> module = parse(text, builtin_registry());
  EXPECT_TRUE(module.ok()) << module.error().message;
  if (!module.ok()) return "";
  std::vector<Tensor> inputs;
  for (const std::vector<int64_t>& shape : shapes)
    inputs.push_back(Tensor::zeros(DType::f32, shape));
  const auto result = evaluate(*module, module->main(), inputs);
  return result.ok() ? "" : result.error().message;
}

TEST(BoundSizes, OpsAreAskedAgain) {
  const char* product = R"(
    func @main(%x: f32[2, s0], %y: f32[s1, 3]) { %z = matmul(%x, %y) return %z })";
  EXPECT_EQ(error_of(product, {{2, 4}, {4, 3}}), "");
  EXPECT_EQ(error_of(product, {{2, 4}, {2, 3}}), "'matmul' needs equal inner dims, got 4 and 2");
}

TEST(BoundSizes, TypesAreWhatOpsMake) {
  const char* squeezed = R"(
    func @main(%x: f32[s0]) { %y = squeeze(%x) {dim = [0]} return %y })";
  EXPECT_EQ(error_of(squeezed, {{2}}), "");
  EXPECT_EQ(error_of(squeezed, {{1}}), "'squeeze' makes f32[], its type says f32[1]");
}

}  // namespace
}  // namespace lathe
