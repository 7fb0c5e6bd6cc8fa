// Passes keep the meaning of the cases in the .lathe files beside this one, in float64, with random
// inputs and weights. Random graphs, with writes in place: tests/random.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>

#include "fmt/format.h"
#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/hash.h"
#include "passes/pipeline/pipeline.h"
#include "tests/tools/file_case.h"

namespace lathe {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  double unit() {
    return static_cast<double>(Hasher().add(seed_).add(++count_).value() >> 11) * 0x1p-53;
  }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

std::vector<Tensor> make_inputs(const Graph& graph, Random& random) {
  std::vector<Tensor> inputs;
  for (const auto& param : graph.params) {
    Tensor input = Tensor::zeros(param->types[0].dtype, param->types[0].static_shape());
    for (double& value : input.floats) value = random.unit() * 2 - 1;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

void expect_equal(const Tensor& a, const Tensor& b, const std::string& what, double tolerance) {
  ASSERT_EQ(a.shape, b.shape) << what;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    double x = a.get(i), y = b.get(i);
    bool is_same = (std::isnan(x) && std::isnan(y)) || x == y ||
                   std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
    ASSERT_TRUE(is_same) << what << ": element " << i << " is " << x << ", was " << y;
  }
}

// Gives every weight that a graph names random elements, all positive: variances are among them.
void make_weights(Module& module, Random& random) {
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes) {
      std::string name = node->string_attr("name");
      if (node->op->name != kConstantOp || name.empty() || module.weights.count(name) > 0) continue;
      Tensor tensor = Tensor::zeros(node->types[0].dtype, node->types[0].static_shape());
      for (double& value : tensor.floats) value = random.unit() + 0.5;
      auto bytes = std::make_shared<std::vector<std::byte>>(to_bytes(tensor));
      Weight& weight = module.weights[name];
      weight.data.type = node->types[0];
      weight.data.strides = row_major_strides(tensor.shape);
      weight.data.bytes = bytes->data();
      weight.data.num_bytes = bytes->size();
      weight.data.owner = bytes;
    }
  }
}

bool is_static(const Graph& graph) {
  for (const auto& param : graph.params)
    if (!param->types[0].is_static()) return false;
  return true;
}

// True when the case could be run on both sides.
bool check_case(const file_test::FileCase& test, const std::string& where) {
  auto module = parse(test.input, builtin_registry());
  auto pipeline = parse_pipeline(test.action);
  if (!module.ok() || !pipeline.ok()) return false;  // a test of errors
  auto end = check_forms(*pipeline, form_of(*module));
  if (!end.ok() || *end >= Form::loops || !is_static(module->main())) return false;
  Unit unit{*std::move(module), {}};
  Random random(1);
  make_weights(unit.module, random);
  std::vector<Tensor> inputs = make_inputs(unit.module.main(), random);
  EvalOptions exact;
  exact.round = false;
  auto before = evaluate(unit.module, unit.module.main(), inputs, exact);
  if (!before.ok()) return false;  // in place: random graphs see to those
  PassContext context{builtin_registry(), *find_target("avx2")};
  RunOptions options;
  options.check_honesty = true;
  auto report = run_pipeline(unit, *pipeline, options, context);
  EXPECT_TRUE(report.ok()) << where << ": " << report.error().message;
  if (!report.ok()) return false;
  auto after = evaluate(unit.module, unit.module.main(), inputs, exact);
  EXPECT_TRUE(after.ok()) << where << ": " << after.error().message;
  if (!after.ok()) return false;
  for (size_t i = 0; i < before->outputs.size(); ++i)
    expect_equal(after->outputs[i], before->outputs[i], where, 1e-4);
  return true;
}

TEST(Meaning, TheCasesOfTheFilesKeepIt) {
  int checked = 0;
  for (const PassDef& pass : builtin_passes()) {
    std::string file = "tests/passes/" + pass.name + ".lathe";
    std::ifstream stream(file);
    std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (text.empty()) continue;  // the house test of names asks for it
    auto cases = file_test::read_cases(text, file);
    ASSERT_TRUE(cases.ok()) << file << ": " << cases.error().message;
    for (const file_test::FileCase& test : *cases)
      checked += check_case(test, fmt::format("{}:{}", file, test.line)) ? 1 : 0;
  }
  EXPECT_GE(checked, 30);
}

}  // namespace
}  // namespace lathe
