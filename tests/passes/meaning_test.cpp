// Passes keep the meaning of the cases in the .lathe files beside this one, in float64, with random
// sizes, inputs and weights. Random graphs, with writes in place: tests/random.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "fmt/format.h"
#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/hash.h"
#include "ir/type/bind.h"
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

using Sizes = std::map<std::string, int64_t>;

// Sizes within their ranges, near the least, that neither a guard nor an op forbids; nullopt when
// that failed.
std::optional<Sizes> make_sizes(const std::string& text, Random& random) {
  Unit unit{*parse(text, builtin_registry()), {}};
  PassContext context{builtin_registry(), *find_target("avx2")};
  if (!run_pipeline(unit, *parse_pipeline("collect_guards"), {}, context).ok()) return std::nullopt;
  const Module& module = unit.module;
  std::vector<std::string> symbols;
  for (const auto& param : module.main().params)
    for (const Dim& size : param->types[0].shape) size.collect_symbols(symbols);
  Sizes sizes;
  for (const std::string& symbol : symbols) {
    const auto found = module.dims.find(symbol);
    const DimRange range = found == module.dims.end() ? DimRange() : found->second;
    const int64_t least = std::max<int64_t>(range.min.value_or(0), 0);
    const int64_t most = std::min<int64_t>(range.max.value_or(INT64_MAX), least + 6);
    sizes[symbol] =
        least + static_cast<int64_t>(random.unit() * static_cast<double>(most - least + 1));
  }
  return check_sizes({}, {module.dims, module.guards}, sizes).ok() ? std::optional(sizes)
                                                                   : std::nullopt;
}

std::optional<std::vector<int64_t>> shape_at(const Shape& shape, const Sizes& sizes) {
  std::vector<int64_t> extents;
  for (const Dim& size : shape) {
    const auto extent = size.evaluate(sizes);
    if (!extent.ok() || *extent < 0 || *extent > 4096) return std::nullopt;
    extents.push_back(*extent);
  }
  return extents;
}

// nullopt when they would be no tensors.
std::optional<std::vector<Tensor>> make_inputs(const Graph& graph, const Sizes& sizes,
                                               Random& random) {
  std::vector<Tensor> inputs;
  for (const auto& param : graph.params) {
    const auto shape = shape_at(param->types[0].shape, sizes);
    if (!shape) return std::nullopt;
    Tensor input = Tensor::zeros(param->types[0].dtype, *shape);
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

// Whether the graph is for these inputs: passes find guards, and give symbols values.
bool takes(const Module& module, const std::vector<Tensor>& inputs, const Sizes& sizes) {
  const Graph& graph = module.main();
  for (size_t i = 0; i < inputs.size(); ++i)
    if (shape_at(graph.params[i]->types[0].shape, sizes) != inputs[i].shape) return false;
  return check_sizes({}, {module.dims, module.guards}, sizes).ok();
}

// True when the case could be run on both sides, with sizes of that seed.
bool check_case(const file_test::FileCase& test, uint64_t seed, const std::string& where) {
  for (const file_test::ExpectedDiag& diag : test.diags)
    if (diag.severity == "error") return false;
  auto module = parse(test.input, builtin_registry());
  auto pipeline = parse_pipeline(test.action);
  if (!module.ok() || !pipeline.ok()) return false;
  auto end = check_forms(*pipeline, form_of(*module));
  if (!end.ok() || *end >= Form::loops) return false;
  Unit unit{*std::move(module), {}};
  Random random(seed);
  const auto sizes = make_sizes(test.input, random);
  if (!sizes) return false;
  make_weights(unit.module, random);
  const auto inputs = make_inputs(unit.module.main(), *sizes, random);
  if (!inputs) return false;
  EvalOptions exact;
  exact.round = false;
  exact.symbols = *sizes;
  auto before = evaluate(unit.module, unit.module.main(), *inputs, exact);
  if (!before.ok()) return false;  // in place: random graphs see to those
  PassContext context{builtin_registry(), *find_target(test.target)};
  RunOptions options;
  options.check_honesty = true;
  auto report = run_pipeline(unit, *pipeline, options, context);
  EXPECT_TRUE(report.ok()) << where << ": " << report.error().message;
  if (!report.ok() || !takes(unit.module, *inputs, *sizes)) return false;
  auto after = evaluate(unit.module, unit.module.main(), *inputs, exact);
  EXPECT_TRUE(after.ok()) << where << ": " << after.error().message;
  if (!after.ok()) return false;
  for (size_t i = 0; i < before->outputs.size(); ++i)
    expect_equal(after->outputs[i], before->outputs[i], where, 1e-4);
  return true;
}

constexpr uint64_t kMostSeeds = 8;  // for sizes that are symbols

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
      for (uint64_t seed = 1; seed <= kMostSeeds; ++seed)
        checked += check_case(test, seed, fmt::format("{}:{}", file, test.line)) ? 1 : 0;
  }
  EXPECT_GE(checked, 250);
}

}  // namespace
}  // namespace lathe
