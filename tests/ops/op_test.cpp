// Every example of every row through every slot: the slots are independent definitions of one op,
// and must agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/graph/builder.h"
#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/loop/text.h"
#include "ir/op/all_ops.h"
#include "ir/op/import_call.h"
#include "ir/op/matrix.h"
#include "tests/ops/element_kernel.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

class OpTest : public testing::TestWithParam<ExampleCase> {
 protected:
  void SetUp() override {
    auto built = build_example(GetParam());
    ASSERT_TRUE(built.ok()) << built.error().message;
    example = *std::move(built);
    ASSERT_NO_FATAL_FAILURE(expected = run({}));
  }

  std::vector<Tensor> run(const EvalOptions& options) {
    auto result = evaluate(example.module, example.module.main(), example.inputs, options);
    EXPECT_TRUE(result.ok()) << result.error().message;
    return result.ok() ? result->outputs : std::vector<Tensor>{};
  }

  const OpDef& op() const { return *GetParam().op; }
  Graph& graph() { return example.module.main(); }

  BuiltExample example;
  std::vector<Tensor> expected;
};

TEST_P(OpTest, InferAgreesWithReference) {
  ASSERT_EQ(expected.size(), example.node->types.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].dtype, example.node->types[i].dtype);
    EXPECT_EQ(expected[i].shape, example.node->types[i].static_shape());
  }
  const Status status = verify(example.module, graph(), Form::imported);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

// Ops that need some sizes as numbers, and what they say when they meet a symbol there.
const std::map<std::string, std::string> kNeedsNumbers = {
    {"attention", "the heads cannot share the keys evenly"},
    {"convolution", "the weight needs constant sizes"},
    {"expand", "cannot repeat"},
    {"fourier", "expected"},
    {"glu", "needs a constant even size"},
    {"group_norm", "cannot divide the channels"},
    {"gru", "needs states of rank 3 and constant size"},
    {"layer_norm", "cannot normalise the last dims"},
    {"lstm", "needs states of rank 3 and constant size"},
    {"recurrent_layer", "a hidden dim of constant size"},
    {"rms_norm", "cannot normalise the last dims"},
    {"rnn_relu", "needs states of rank 3 and constant size"},
    {"rnn_tanh", "needs states of rank 3 and constant size"},
    {"slice_scatter", "along a symbolic dim"},
};

// Inference with a symbol for every operand's dim of one of these sizes; where it accepts that, its
// result must be the concrete one under the symbols' values. The diagnostic when it does not.
std::string infer_on_symbols(BuiltExample& example, const std::vector<Tensor>& expected,
                             const std::set<int64_t>& sizes) {
  std::map<std::string, int64_t> values;
  std::vector<TensorType> concrete;
  auto& params = example.module.main().params;
  for (auto& param : params) {
    concrete.push_back(param->types.front());
    for (Dim& dim : param->types.front().shape) {
      if (sizes.count(dim.value()) == 0) continue;
      const std::string name = "s" + std::to_string(dim.value());
      values[name] = dim.value();
      dim = Dim::symbol(name);
    }
  }
  const auto types = example.node->op->infer.function(*example.node);
  for (size_t i = 0; i < params.size(); ++i) params[i]->types.front() = concrete[i];
  if (!types.ok()) return types.error().message;
  EXPECT_EQ(types->size(), expected.size());
  for (size_t i = 0; i < std::min(types->size(), expected.size()); ++i) {
    std::vector<int64_t> shape;
    for (const Dim& dim : (*types)[i].shape) {
      const auto size = dim.evaluate(values);
      EXPECT_TRUE(size.ok()) << size.error().message;
      shape.push_back(size.ok() ? *size : -1);
    }
    EXPECT_EQ(shape, expected[i].shape);
  }
  return "";
}

// Of every size of the operands but 1, by which broadcasting decides.
TEST_P(OpTest, InferAgreesOnSymbols) {
  std::set<int64_t> sizes;
  for (auto& param : graph().params)
    for (const Dim& dim : param->types.front().shape)
      if (dim.value() > 1) sizes.insert(dim.value());
  const std::string refusal = infer_on_symbols(example, expected, sizes);
  if (refusal.empty()) return;  // accepted and compared
  const auto known = kNeedsNumbers.find(op().name);
  ASSERT_NE(known, kNeedsNumbers.end()) << "refuses symbols: " << refusal;
  EXPECT_NE(refusal.find(known->second), std::string::npos) << refusal;
  for (int64_t size : sizes) infer_on_symbols(example, expected, {size});  // one alone may do
}

TEST_P(OpTest, PrintsAndParsesBack) {
  const std::string text = print(example.module);
  auto parsed = parse(text, builtin_registry());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message << "\n" << text;
  EXPECT_EQ(print(*parsed), text);
  EXPECT_EQ(structural_hash(*parsed), structural_hash(example.module));
}

class DecomposeTest : public OpTest {};

TEST_P(DecomposeTest, AgreesWithReference) {
  Builder builder(graph(), builtin_registry(), example.node->loc);
  const std::vector<Value> results = op().decompose.function(builder, *example.node);
  ASSERT_FALSE(builder.failed()) << builder.error().message;
  ASSERT_EQ(results.size(), expected.size());
  graph().outputs = results;
  const std::vector<Tensor> got = run({});
  ASSERT_EQ(got.size(), expected.size()) << print(graph());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(results[i].type(), example.node->types[i]);
    EXPECT_EQ(difference(expected[i], got[i]), "") << print(graph());
  }
}

class LowerTest : public OpTest {};

TEST_P(LowerTest, AgreesWithReference) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const loop::Kernel kernel = element_kernel(*example.node, static_cast<int>(i));
    const auto got = run_kernel(kernel, example.inputs, example.node->types[i]);
    ASSERT_TRUE(got.ok()) << got.error().message << "\n" << loop::print(kernel);
    EXPECT_EQ(difference(expected[i], *got), "") << loop::print(kernel);
  }
}

// --- derivative

double weighted_sum(const std::vector<Tensor>& outputs, const std::vector<Tensor>& weights) {
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (int64_t j = 0; j < outputs[i].num_elements(); ++j) {
      sum += outputs[i].get(j) * weights[i].get(j);
    }
  }
  return sum;
}

class DerivativeTest : public OpTest {};

TEST_P(DerivativeTest, AgreesWithFiniteDifferences) {
  std::vector<Tensor> weights;
  for (const TensorType& type : example.node->types) {
    weights.push_back(example_tensor({.dtype = type.dtype, .shape = type.static_shape()}, 99));
  }
  constexpr double kStep = 1e-5;
  const EvalOptions exact{.round = false};
  std::vector<std::vector<double>> slopes;
  for (Tensor& input : example.inputs) {
    std::vector<double> slope;
    for (size_t j = 0; is_float(input.dtype) && j < input.floats.size(); ++j) {
      const double x = input.floats[j];
      input.floats[j] = x + kStep;
      const double above = weighted_sum(run(exact), weights);
      input.floats[j] = x - kStep;
      slope.push_back((above - weighted_sum(run(exact), weights)) / (2 * kStep));
      input.floats[j] = x;
    }
    slopes.push_back(std::move(slope));
  }

  Builder builder(graph(), builtin_registry(), example.node->loc);
  std::vector<Value> gradients;
  std::vector<Tensor> inputs = example.inputs;
  for (size_t i = 0; i < weights.size(); ++i) {
    gradients.push_back(builder.param(example.node->types[i], "g"));
    example.inputs.push_back(weights[i]);
  }
  const std::vector<Value> results = op().derivative.function(builder, *example.node, gradients);
  ASSERT_FALSE(builder.failed()) << builder.error().message;
  ASSERT_EQ(results.size(), example.node->operands.size());
  size_t input = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!example.node->operands[i]) continue;
    const size_t slot = input++;
    if (!results[i] || slopes[slot].empty()) {
      for (double slope : slopes[slot])
        EXPECT_NEAR(slope, 0, 1e-4) << "operand " << i << " has no gradient";
      continue;
    }
    EXPECT_EQ(results[i].type(), example.node->operands[i].type());
    graph().outputs = {results[i]};
    const std::vector<Tensor> got = run(exact);
    ASSERT_EQ(got.size(), 1u);
    for (size_t j = 0; j < slopes[slot].size(); ++j) {
      if (std::isnan(got[0].floats[j]) && std::isnan(slopes[slot][j])) continue;
      EXPECT_NEAR(got[0].floats[j], slopes[slot][j], 1e-4 * (1 + std::fabs(slopes[slot][j])))
          << "operand " << i << ", element " << j << "\n"
          << print(graph());
    }
  }
}

// --- an absent slot is not a test: its reason stands in the row

template <typename Predicate>
std::vector<ExampleCase> examples_where(Predicate has_slot) {
  std::vector<ExampleCase> examples;
  for (const ExampleCase& example : all_examples()) {
    if (has_slot(example)) examples.push_back(example);
  }
  return examples;
}

bool has_decompose(const ExampleCase& example) { return bool{example.op->decompose}; }
bool has_lower(const ExampleCase& example) { return bool{example.op->lower}; }

// Slopes are those of float results; an example of another dtype has none to compare.
bool has_slopes(const ExampleCase& example) {
  if (!example.op->derivative) return false;
  auto built = build_example(example);
  return !built.ok() || std::ranges::all_of(built->node->types, [](const TensorType& type) {
    return is_float(type.dtype);
  });
}

std::string name_of(const testing::TestParamInfo<ExampleCase>& test) { return test.param.name(); }

INSTANTIATE_TEST_SUITE_P(AllExamples, OpTest, testing::ValuesIn(all_examples()), name_of);
INSTANTIATE_TEST_SUITE_P(AllExamples, DecomposeTest,
                         testing::ValuesIn(examples_where(has_decompose)), name_of);
INSTANTIATE_TEST_SUITE_P(AllExamples, LowerTest, testing::ValuesIn(examples_where(has_lower)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(AllExamples, DerivativeTest, testing::ValuesIn(examples_where(has_slopes)),
                         name_of);

// --- rows

TEST(Rows, EveryAbsentSlotSaysWhy) {
  for (const OpDef& op : builtin_registry().rows()) {
    const auto check = [&](const auto& slot, const char* name) {
      EXPECT_NE(static_cast<bool>(slot), !slot.why.empty()) << op.name << " " << name;
    };
    check(op.infer, "infer");
    check(op.reference, "reference");
    check(op.decompose, "decompose");
    check(op.lower, "lower");
    check(op.derivative, "derivative");
    const bool is_defined = op.lower || op.decompose || op.traits.op_class == OpClass::structure ||
                            op.traits.op_class == OpClass::matrix || op.traits.binds_size ||
                            op.lower.why == kHasTemplate.why || op.traits.asserts == Asserts::key ||
                            op.name == "atan2";
    EXPECT_TRUE(is_defined) << op.name << " can neither be lowered nor decomposed";
  }
}

TEST(Rows, EveryRowHasASummaryAndAnExample) {
  for (const OpDef& op : builtin_registry().rows()) {
    EXPECT_FALSE(op.summary.empty()) << op.name;
    const bool needs_example = op.traits.op_class != OpClass::structure;
    EXPECT_TRUE(!op.examples.empty() || !needs_example) << op.name;
  }
}

TEST(Rows, NamesAreUnique) {
  const std::vector<OpDef>& rows = builtin_registry().rows();
  for (size_t i = 1; i < rows.size(); ++i) EXPECT_NE(rows[i - 1].name, rows[i].name);
}

TEST(Rows, ImportsFitTheirRows) {
  const auto table = ImportTable::create(builtin_registry());
  ASSERT_TRUE(table.ok()) << table.error().message;
  const Status checked = table->check();
  EXPECT_TRUE(checked.ok()) << checked.error().message;
  EXPECT_GT(table->targets().size(), 200u);
}

}  // namespace
}  // namespace lathe
