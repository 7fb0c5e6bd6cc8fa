// Rows over symbolic sizes: every example with symbols for the sizes of its operands and its
// attributes, inferred, lowered and decomposed once, agrees with its reference at every size that
// it takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/loop/lift_sizes.h"
#include "ir/loop/text.h"
#include "ir/op/all_ops.h"
#include "ir/type/guard.h"
#include "tests/ops/element_kernel.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr int64_t kMaxSize = 4096;  // products of five are numbers still

// An example over symbols.
struct Symbolic {
  BuiltExample built;
  Example example;
  Sizes hints;  // the example's own sizes
  std::vector<Guard> demands;
  std::string refusal;  // of the first size that must be a number

  Graph& graph() { return built.module.main(); }
  Node& node() { return *built.node; }
};

std::map<std::string, Dim> as_dims(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }

Status infer(Symbolic& all) {
  Node& node = all.node();
  LATHE_TRY(node.types, node.op->infer.function(node));
  all.demands.clear();
  if (node.op->demands != nullptr) all.demands = node.op->demands(node);
  LATHE_DO(check_guards(all.demands, as_dims(all.hints)));
  if (!node.op->decompose) return Ok{};
  const std::unique_ptr<Graph> trial = all.graph().clone();
  Builder builder(*trial, builtin_registry(), node.loc);
  node.op->decompose.function(builder, *trial->nodes.front());
  return builder.failed() ? Status(builder.error()) : Ok{};
}

// Calls visit with every size in the types of the params and in the attributes.
template <class Visit>
void for_each_size(Symbolic& all, Visit&& visit) {
  for (auto& param : all.graph().params)
    for (Dim& size : param->types[0].shape) visit(size, true);
  for (Attr& attr : all.node().attrs) {
    if (auto* size = std::get_if<Dim>(&attr)) visit(*size, false);
    if (auto* sizes = std::get_if<std::vector<Dim>>(&attr))
      for (Dim& size : *sizes) visit(size, false);
  }
}

// Each size above 1, of which there is a symbol as the exporter would make it; what is refused then
// stays a number: in the attributes or everywhere.
void name_size(Symbolic& all, int64_t value) {
  const std::string name = fmt::format("s{}", value);
  for (const bool also_attributes : {true, false}) {
    std::vector<Dim> before;
    for_each_size(all, [&](Dim& size, bool is_operand) {
      before.push_back(size);
      if (size == Dim(value) && (is_operand || also_attributes)) size = Dim::symbol(name);
    });
    all.hints[name] = value;
    const Status status = infer(all);
    if (status.ok()) return;
    if (all.refusal.empty()) all.refusal = status.error().message;
    all.hints.erase(name);
    size_t next = 0;
    for_each_size(all, [&](Dim& size, bool) { size = before[next++]; });
  }
  EXPECT_TRUE(infer(all).ok());
}

Symbolic symbolic(const OpDef& op, const Example& example) {
  Symbolic all;
  all.example = example;
  auto built = build_example(op, example);
  EXPECT_TRUE(built.ok());
  if (!built.ok()) return all;
  all.built = *std::move(built);
  std::set<int64_t> values;
  for_each_size(all, [&](Dim& size, bool) {
    if (size.value() > 1 && size.value() <= kMaxSize) values.insert(size.value());
  });
  for (int64_t value : values) name_size(all, value);
  // A symbol that stands nowhere any more is none.
  std::vector<std::string> names;
  for_each_size(all, [&](Dim& size, bool) { size.collect_symbols(names); });
  std::erase_if(all.hints, [&](const auto& hint) {
    return std::find(names.begin(), names.end(), hint.first) == names.end();
  });
  return all;
}

// The sizes of the example, those beside it, primes, 0 and 1 alone and together, and some at
// random; of them the first ones that the node takes.
std::vector<Sizes> points(const Symbolic& all) {
  std::vector<Sizes> candidates = {all.hints};
  const auto with = [&](auto&& change) {
    candidates.push_back(all.hints);
    int64_t i = 0;
    for (auto& [name, size] : candidates.back()) size = change(size, i++);
  };
  constexpr int64_t kPrimes[] = {2, 3, 5, 7, 11, 13};
  with([](int64_t size, int64_t) { return size + 1; });
  with([&](int64_t, int64_t i) { return kPrimes[i % 6]; });
  with([](int64_t, int64_t) { return 1; });
  with([](int64_t, int64_t) { return 0; });
  for (int64_t own = 0; own < static_cast<int64_t>(all.hints.size()); ++own)
    for (int64_t size : {0, 1})
      with([&](int64_t hint, int64_t i) { return i == own ? size : hint; });
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i)
    with([&](int64_t, int64_t) { return static_cast<int64_t>(random() % 9); });
  std::vector<Sizes> found;
  constexpr size_t kEnough = 10;
  for (const Sizes& point : candidates) {
    if (found.size() >= kEnough) break;
    const bool is_new = std::find(found.begin(), found.end(), point) == found.end();
    if (is_new && check_guards(all.demands, as_dims(point)).ok()) found.push_back(point);
  }
  return found;
}

// The node at these sizes with operands, and what its reference says.
struct Static {
  std::unique_ptr<Graph> graph;
  std::vector<Tensor> inputs, expected;
  const Node& node() const { return *graph->nodes.front(); }
};

// Nothing where there is no such tensor, or the data does not fit (a position that is none).
std::optional<Static> at(Symbolic& all, const Sizes& sizes) {
  Static result{all.graph().clone(), {}, {}};
  result.graph->substitute(as_dims(sizes));
  for (const TensorType& type : result.node().types)
    if (!type.static_elements()) return std::nullopt;
  size_t param = 0;
  for (size_t i = 0; i < all.example.operands.size(); ++i) {
    ExampleTensor spec = all.example.operands[i];
    if (spec.is_none) continue;
    spec.shape = result.graph->params[param++]->types[0].static_shape();
    const std::vector<double> given = spec.values;
    const int64_t count = Tensor::zeros(spec.dtype, spec.shape).num_elements();
    for (int64_t n = 0; n < count && !given.empty(); ++n) {
      spec.values.resize(static_cast<size_t>(count));
      spec.values[static_cast<size_t>(n)] = given[static_cast<size_t>(n) % given.size()];
    }
    result.inputs.push_back(example_tensor(spec, i + 1));
  }
  auto ran = evaluate(all.built.module, *result.graph, result.inputs);
  if (!ran.ok()) return std::nullopt;
  result.expected = std::move(ran->outputs);
  return result;
}

std::string text(const Sizes& sizes) {
  std::string result;
  for (const auto& [name, size] : sizes) result += fmt::format(" {} = {}", name, size);
  return result;
}

// The symbolic kernel of one result gives what the reference does, and also where its symbols may
// be 0, by which simplification knows less.
void check_kernel(Symbolic& all, int result, int64_t least,
                  const std::vector<std::pair<Sizes, Static>>& cases) {
  std::map<std::string, DimRange> ranges;
  for (const auto& hint : all.hints) ranges[hint.first] = {least, kMaxSize};
  loop::Kernel kernel = element_kernel(all.node(), result, ranges);
  const std::string before = loop::print(kernel);
  const std::vector<Dim> dims = loop::lift_sizes(kernel);
  for (const auto& [sizes, fixed] : cases) {
    if (std::any_of(sizes.begin(), sizes.end(), [&](const auto& s) { return s.second < least; }))
      continue;
    std::vector<int64_t> values;
    for (const Dim& dim : dims) {
      const auto value = dim.evaluate(sizes);
      ASSERT_TRUE(value.ok()) << dim.str();
      values.push_back(*value);
    }
    const auto i = static_cast<size_t>(result);
    const auto got = run_kernel(kernel, fixed.inputs, fixed.node().types[i], values);
    ASSERT_TRUE(got.ok()) << got.error().message << text(sizes) << "\n" << before;
    ASSERT_EQ(difference(fixed.expected[i], *got), "") << text(sizes) << "\n" << before;
  }
}

void check(const OpDef& op, const Example& example) {
  Symbolic all = symbolic(op, example);
  if (all.hints.empty())
    GTEST_SKIP() << "no symbol: "
                 << (all.refusal.empty() ? "no size of the example is above 1" : all.refusal);
  std::vector<std::pair<Sizes, Static>> cases;
  for (const Sizes& point : points(all)) {
    std::optional<Static> fixed = at(all, point);
    EXPECT_TRUE(fixed || point != all.hints);
    if (fixed) cases.emplace_back(point, *std::move(fixed));
  }
  for (size_t i = 0; op.lower && i < all.node().types.size(); ++i)
    for (const int64_t least : {0, 2}) {
      check_kernel(all, static_cast<int>(i), least, cases);
      if (testing::Test::HasFatalFailure()) return;
    }
  if (!op.decompose) return;
  Builder builder(all.graph(), builtin_registry(), all.node().loc);
  all.graph().outputs = op.decompose.function(builder, all.node());
  ASSERT_FALSE(builder.failed()) << builder.error().message;
  std::vector<Guard>
      demands;  // an op of no elements may become one that needs some (softmax: amax)
  for (const auto& part : all.graph().nodes)
    if (part->op->demands != nullptr)
      for (Guard& demand : part->op->demands(*part)) demands.push_back(std::move(demand));
  for (const auto& [sizes, fixed] : cases) {
    if (!check_guards(demands, as_dims(sizes)).ok()) continue;
    const std::unique_ptr<Graph> graph = all.graph().clone();
    graph->substitute(as_dims(sizes));
    const auto got = evaluate(all.built.module, *graph, fixed.inputs);
    ASSERT_TRUE(got.ok()) << got.error().message << text(sizes) << "\n" << print(all.graph());
    for (size_t i = 0; i < fixed.expected.size(); ++i)
      ASSERT_EQ(difference(fixed.expected[i], got->outputs[i]), "") << text(sizes) << "\n"
                                                                    << print(all.graph());
  }
}

class SymbolicTest : public testing::TestWithParam<ExampleCase> {};
TEST_P(SymbolicTest, AgreesWithReference) {
  check(*GetParam().op, GetParam().op->examples[GetParam().example]);
}
INSTANTIATE_TEST_SUITE_P(Examples, SymbolicTest, testing::ValuesIn(lowerable_examples()),
                         [](const auto& info) { return info.param.name(); });

// Windows at the ends of what they take.
TEST(Symbolic, OddWindowsAgreeWithReference) {
  std::mt19937 random(1);
  const auto any = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  using Ints = std::vector<int64_t>;
  for (int round = 0; round < 40; ++round) {
    const int64_t kernel = any(1, 3), stride = any(1, 3), dilation = any(1, 2);
    const int64_t groups = any(1, 2), half = any(0, kernel / 2);
    const NamedAttrs shared = {{"stride", Ints{stride}}, {"padding", Ints{half}}};
    const ExampleTensor input{.shape = {2, 4, any(6, 9)}};
    NamedAttrs max = shared, average = shared, convolution = shared;
    max.insert(max.end(), {{"kernel_size", Ints{kernel}},
                           {"dilation", Ints{dilation}},
                           {"ceil_mode", any(0, 1) == 1}});
    average.insert(average.end(), {{"kernel_size", Ints{kernel}},
                                   {"ceil_mode", any(0, 1) == 1},
                                   {"count_include_pad", any(0, 1) == 1}});
    const bool is_transposed = any(0, 1) == 1;
    convolution.insert(
        convolution.end(),
        {{"dilation", Ints{dilation}}, {"groups", groups}, {"transposed", is_transposed}});
    convolution[1].second = Ints{any(0, 2)};
    const ExampleTensor weight{.shape = {4, is_transposed ? 2 : 4 / groups, kernel}};
    const auto run = [&](const char* op, Example example) {
      SCOPED_TRACE(fmt::format("{} of kernel {}, round {}", op, kernel, round));
      check(*builtin_registry().find(op), example);
    };
    run("max_pool1d", {.operands = {input}, .attrs = max});
    run("avg_pool1d", {.operands = {input}, .attrs = average});
    run("convolution", {.operands = {input, weight, {.is_none = true}}, .attrs = convolution});
    run("adaptive_avg_pool1d", {.operands = {input}, .attrs = {{"output_size", Ints{any(1, 5)}}}});
    if (HasFailure()) return;
  }
}

// How many of the tests above do run, and at how many sizes that are not their own.
TEST(Symbolic, MostExamplesTakeSymbols) {
  std::map<std::string, std::string> refusals;
  size_t count = 0, others = 0;
  for (const ExampleCase& test : lowerable_examples()) {
    Symbolic all = symbolic(*test.op, test.op->examples[test.example]);
    if (!all.refusal.empty()) refusals[test.op->name] = all.refusal;
    if (all.hints.empty()) continue;
    ++count;
    if (points(all).size() > 1) ++others;
  }
  for (const auto& [op, why] : refusals) fmt::print("{}: {}\n", op, why);
  fmt::print("{} of {} examples have symbols, {} at other sizes\n", count,
             lowerable_examples().size(), others);
  EXPECT_GE(count, 380u);
  EXPECT_GE(others, 375u);
}

}  // namespace
}  // namespace lathe
