// Runs the example in every pass's row: what stands before `=>` becomes what stands behind it, the
// pass is honest, its promised form holds, and every node says where it came from. What makes or
// changes a program has no graph to show behind `=>`: it leaves launches.
#include <gtest/gtest.h>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

struct Halves {
  std::string before;
  std::string after;  // empty: a program
};
Halves split(const std::string& example) {
  size_t arrow = example.find("\n=>");
  if (arrow == std::string::npos) return {example, ""};
  return {example.substr(0, arrow + 1), example.substr(arrow + 3)};
}

Module parse_or_fail(const std::string& text) {
  Result<Module> module = parse(text, builtin_registry(), "<example>");
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message) << "\n" << text;
  return module.ok() ? *std::move(module) : Module();
}

// The pass alone, or behind what lowers to loops when it works on programs.
Pipeline pipeline_for(const PassDef& pass) {
  Result<Pipeline> pipeline = parse_pipeline(pass.needs < Form::loops ? "" : "lower_to_loops");
  EXPECT_TRUE(pipeline.ok());
  Pipeline steps = pipeline.ok() ? *std::move(pipeline) : Pipeline();
  PassOptions defaults;
  for (const PassOption& option : pass.options) defaults[option.name] = option.default_value;
  steps.steps.push_back({&pass, defaults});
  return steps;
}

void expect_known_locations(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    EXPECT_FALSE(node->loc.is_unknown()) << print(*node);
    for (const auto& body : node->bodies) expect_known_locations(*body);
  }
}

class PassExample : public testing::TestWithParam<std::string> {};

TEST_P(PassExample, Holds) {
  const PassDef* pass = find_pass(GetParam());
  ASSERT_NE(pass, nullptr);
  ASSERT_FALSE(pass->example.empty()) << "a pass needs an example";
  EXPECT_FALSE(pass->summary.empty());
  Halves halves = split(pass->example);
  Unit unit;
  unit.module = parse_or_fail(halves.before);
  ASSERT_FALSE(unit.module.graphs.empty());
  PassContext context{builtin_registry(), *find_target(pass->isa)};
  RunOptions options;
  options.check_honesty = true;
  auto report = run_pipeline(unit, pipeline_for(*pass), options, context);
  ASSERT_TRUE(report.ok()) << report.error().message << "\n" << print(unit.module);
  EXPECT_EQ(report->passes.back().changed, Changed::yes) << "an example shows a change";
  EXPECT_GE(report->form, pass->leaves);
  ASSERT_EQ(halves.after.empty(), pass->leaves >= Form::loops) << "what does the pass make of it?";
  if (halves.after.empty()) {
    EXPECT_FALSE(unit.program.steps.empty());
    return;
  }
  expect_known_locations(unit.module.main());
  Module expected = parse_or_fail(halves.after);
  ASSERT_FALSE(expected.graphs.empty());
  EXPECT_EQ(structural_hash(unit.module), structural_hash(expected))
      << "got\n"
      << print(unit.module) << "expected\n"
      << print(expected);
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const PassDef& pass : builtin_passes()) names.push_back(pass.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Passes, PassExample, testing::ValuesIn(pass_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lathe
