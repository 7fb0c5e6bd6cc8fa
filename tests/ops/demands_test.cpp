// What a row demands of symbolic sizes is what its infer refuses of numbers: every example with
// symbols for the sizes of its operands, bound to numbers below 8.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/graph/text.h"
#include "ir/type/guard.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

using Point = std::map<std::string, Dim>;

Status infer(Node& node) {
  auto types = node.op->infer.function(node);
  if (!types.ok()) return types.error();
  node.types = *std::move(types);
  return Ok{};
}

// Chosen sizes of the operands, from the first on, become symbols of the same value. What then is
// no example (a size that must be a number) stays as it was.
Point name_sizes(Module& module, Node& node, std::mt19937& random) {
  Point hints;
  std::uniform_int_distribution<int> coin(0, 1);
  for (const auto& param : module.main().params) {
    for (Dim& size : param->types[0].shape) {
      if (coin(random) == 0) continue;
      const Dim before = size;
      const std::string name = "s" + std::to_string(hints.size());
      size = Dim::symbol(name);
      if (infer(node).ok())
        hints.emplace(name, before);
      else
        size = before;
    }
  }
  EXPECT_TRUE(infer(node).ok());
  return hints;
}

bool is_possible(const Node& node) {
  return std::all_of(node.types.begin(), node.types.end(), [](const TensorType& type) {
    return std::all_of(type.shape.begin(), type.shape.end(),
                       [](const Dim& size) { return size.is_const() && size.value() >= 0; });
  });
}

class DemandsTest : public testing::TestWithParam<ExampleCase> {};
TEST_P(DemandsTest, AreWhatInferRefuses) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> any(0, 7);
  for (int round = 0; round < 40; ++round) {
    auto built = build_example(GetParam());
    ASSERT_TRUE(built.ok());
    Node& node = *built->node;
    const Point hints = name_sizes(built->module, node, random);
    std::vector<Guard> demands;
    if (node.op->demands != nullptr) demands = node.op->demands(node);
    for (int i = 0; i < 20; ++i) {
      Point point = hints;
      for (auto& [name, size] : point)
        if (i > 0 && any(random) < 3) size = any(random);
      const std::unique_ptr<Graph> bound = built->module.main().clone();
      bound->substitute(point);
      Node& number = *bound->nodes.front();
      const Status demanded = check_guards(demands, point);
      const bool is_demanded = demanded.ok() && is_possible(number);
      const std::vector<TensorType> expected = number.types;
      const std::string text = print(number);
      const Status inferred = infer(number);
      const bool fits = inferred.ok() && number.types == expected;
      EXPECT_EQ(is_demanded, fits)
          << print(node) << "\n"
          << text << "\n"
          << (inferred.ok() ? print(number) : inferred.error().message) << "\n"
          << (demanded.ok() ? "" : demanded.error().message);
      if (is_demanded != fits) return;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Examples, DemandsTest, testing::ValuesIn(all_examples()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace lathe
