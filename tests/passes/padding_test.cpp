// pad_shapes keeps the meaning of every example of every row with symbols for its sizes, and of the
// cases in its .lathe files, at sizes around multiples and buckets, or refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "fmt/format.h"
#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/type/bind.h"
#include "passes/pipeline/pipeline.h"
#include "tests/ops/example_case.h"
#include "tests/tools/file_case.h"

namespace lathe {
namespace {

using Sizes = std::map<std::string, int64_t>;
constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31};

// Positions are below 2: most dims have that many elements.
std::optional<std::vector<Tensor>> inputs_at(const Graph& graph, const Sizes& sizes,
                                             std::mt19937& random) {
  std::uniform_real_distribution<double> real(-2, 2);
  std::uniform_int_distribution<int64_t> integer(0, 1);
  std::vector<Tensor> inputs;
  for (const auto& param : graph.params) {
    std::vector<int64_t> shape;
    for (const Dim& size : param->types[0].shape) {
      const auto extent = size.evaluate(sizes);
      if (!extent.ok() || *extent < 0) return std::nullopt;
      shape.push_back(*extent);
    }
    Tensor input = Tensor::zeros(param->types[0].dtype, shape);
    for (double& value : input.floats) value = real(random);
    for (int64_t& value : input.integers) value = integer(random);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

void expect_equal(const Tensor& a, const Tensor& b, const std::string& where) {
  ASSERT_EQ(a.shape, b.shape) << where;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.get(i), y = b.get(i);
    ASSERT_TRUE((std::isnan(x) && std::isnan(y)) || x == y ||
                std::fabs(x - y) <= 1e-9 * (1 + std::fabs(y)))
        << where << ": element " << i << " is " << x << ", was " << y;
  }
}

// True when the module as it was takes these sizes.
bool agrees_at(const Module& before, const Module& after, const Sizes& sizes,
               std::mt19937& random) {
  const auto inputs = inputs_at(before.main(), sizes, random);
  if (!inputs || !check_sizes({}, {after.dims, after.guards}, sizes).ok()) return false;
  EvalOptions exact;
  exact.round = false;
  exact.symbols = sizes;
  const auto expected = evaluate(before, before.main(), *inputs, exact);
  if (!expected.ok()) return false;
  std::string where = print(after);
  for (const auto& [name, size] : sizes) where += fmt::format("{} = {}\n", name, size);
  const auto result = evaluate(after, after.main(), *inputs, exact);
  EXPECT_TRUE(result.ok()) << where << result.error().message;
  for (size_t i = 0; result.ok() && i < expected->outputs.size(); ++i)
    expect_equal(result->outputs[i], expected->outputs[i], where);
  return true;
}

Status pad(Unit& unit, const std::string& pipeline) {
  PassContext context{builtin_registry(), *find_target("avx2")};
  RunOptions options;
  options.check_honesty = true;
  const auto parsed = parse_pipeline(pipeline);
  if (!parsed.ok()) return parsed.error();
  const auto report = run_pipeline(unit, *parsed, options, context);
  if (!report.ok()) return report.error();
  return Ok{};
}

bool is_refusal(const Diag& diag) {
  return diag.message.find("stands in the way") != std::string::npos;
}

// --- examples

// Every size of this extent becomes a symbol, among attributes too when `with_attrs`; false when
// that is no example.
bool name_extent(Module& module, Node& node, int64_t extent, bool with_attrs) {
  const std::string name = fmt::format("s{}", extent);
  const auto named = [&](Dim& size) {
    if (size == Dim(extent)) size = Dim::symbol(name);
  };
  for (const auto& param : module.main().params)
    for (Dim& size : param->types[0].shape) named(size);
  for (Attr& attr : node.attrs)
    if (auto* dims = std::get_if<std::vector<Dim>>(&attr); dims && with_attrs)
      std::for_each(dims->begin(), dims->end(), named);
  auto types = node.op->infer.function(node);
  if (!types.ok()) return false;
  node.types = *std::move(types);
  return true;
}

class PaddingOfExamples : public testing::TestWithParam<ExampleCase> {};
TEST_P(PaddingOfExamples, KeepsWhatTheyCompute) {
  std::mt19937 random(1);
  const auto original = build_example(GetParam());
  ASSERT_TRUE(original.ok());
  std::set<int64_t> extents;
  for (const auto& param : original->module.main().params)
    for (const Dim& size : param->types[0].shape) extents.insert(size.value());
  for (int round = 0; round < 8; ++round) {
    auto built = build_example(GetParam());
    bool is_example = true;
    Sizes hints;
    for (int64_t extent : extents) {
      if (random() % 2 == 0) continue;
      is_example = is_example && name_extent(built->module, *built->node, extent, round % 2 == 0);
      hints.emplace(fmt::format("s{}", extent), extent);
    }
    if (!is_example || hints.empty()) continue;
    const std::string text = print(built->module);
    const auto before = parse(text, builtin_registry());
    ASSERT_TRUE(before.ok()) << before.error().message << "\n" << text;
    Unit unit{*parse(text, builtin_registry()), {}};
    const bool is_bucketed = round % 4 == 3;
    std::string sizes = "4";
    for (const auto& [name, extent] : hints)
      if (is_bucketed) sizes += fmt::format(",{}=3|6|17", name);
    if (const Status status = pad(unit, "pad_shapes{sizes=" + sizes + "}"); !status.ok()) {
      EXPECT_TRUE(is_refusal(status.error())) << status.error().message << "\n" << text;
      continue;
    }
    agrees_at(*before, unit.module, hints, random);
    for (int i = 0; i < 4; ++i) {
      Sizes point;
      for (const auto& [name, extent] : hints) point[name] = kSizes[random() % 8];
      agrees_at(*before, unit.module, point, random);
    }
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Examples, PaddingOfExamples, testing::ValuesIn(all_examples()),
                         [](const auto& info) { return info.param.name(); });

// --- cases

TEST(PaddingOfCases, KeepsWhatTheyCompute) {
  std::mt19937 random(1);
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/passes")) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("pad_shapes", 0) != 0) continue;
    std::ifstream stream(entry.path());
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    const auto cases = file_test::read_cases(text, name);
    ASSERT_TRUE(cases.ok()) << cases.error().message;
    for (const file_test::FileCase& test : *cases) {
      if (!test.diags.empty()) continue;
      const auto before = parse(test.input, builtin_registry());
      ASSERT_TRUE(before.ok()) << before.error().message;
      Unit unit{*parse(test.input, builtin_registry()), {}};
      const Status status = pad(unit, test.action);
      EXPECT_TRUE(status.ok()) << name << ":" << test.line << ": " << status.error().message;
      if (!status.ok()) continue;
      std::vector<std::string> symbols;
      for (const auto& param : before->main().params)
        for (const Dim& size : param->types[0].shape) size.collect_symbols(symbols);
      for (size_t i = 0; i < 2 * std::size(kSizes); ++i) {
        Sizes point;
        for (size_t s = 0; s < symbols.size(); ++s)
          point[symbols[s]] = kSizes[(i + s * (i % 3)) % std::size(kSizes)];
        checked += agrees_at(*before, unit.module, point, random) ? 1 : 0;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GE(checked, 200);
}

}  // namespace
}  // namespace lathe
