// The rule by which results are right, and the timing.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "frontend/driver/check.h"
#include "frontend/driver/measure.h"
#include "frontend/driver/model.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"

namespace lathe {
namespace {

Tensor floats(std::vector<double> values, DType dtype = DType::f32) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<int64_t>(values.size())};
  tensor.floats = std::move(values);
  return tensor;
}

TEST(Check, AcceptsWhatIsClose) {
  Tensor exact = floats({1, -2, 3});
  EXPECT_TRUE(compare(floats({1.00001, -2, 3}), exact, exact).passed);
}

TEST(Check, RefusesWhatIsFarAndSaysWhere) {
  Tensor exact = floats({1, -2, 3});
  Agreement agreement = compare(floats({1, -2.1, 3}), exact, exact);
  EXPECT_FALSE(agreement.passed);
  EXPECT_NEAR(agreement.max_abs_error, 0.1, 1e-12);
  EXPECT_EQ(agreement.why, "1 of 3 elements are off, the first is element 1: -2.1, expected -2");
}

TEST(Check, AcceptsAnErrorThatRoundingHasToo) {
  Tensor exact = floats({1, -2, 3});
  EXPECT_TRUE(compare(floats({1, -2.1, 3}), exact, floats({1.05, -2, 3})).passed);
  EXPECT_FALSE(compare(floats({1, -2.1, 3}), exact, floats({1.001, -2, 3})).passed);
}

// A thousand elements, each as far off as its `errors` says.
Tensor ones_with_errors(const std::function<double(size_t)>& errors) {
  std::vector<double> values(1000, 1);
  for (size_t i = 0; i < values.size(); ++i) values[i] += errors(i);
  return floats(std::move(values));
}

TEST(Check, RefusesOneWrongElementAmongManyRoundedOnes) {
  const Tensor exact = ones_with_errors([](size_t) { return 0; });
  const Tensor rounded = ones_with_errors([](size_t i) { return i % 2 == 0 ? 1e-3 : -1e-3; });
  const Tensor result = ones_with_errors([](size_t i) { return i == 700 ? 0.05 : 1e-3; });
  const Agreement agreement = compare(result, exact, rounded);
  EXPECT_LT(agreement.rmse, 3 * agreement.rounded_rmse);
  EXPECT_FALSE(agreement.passed);
  EXPECT_EQ(agreement.why,
            "element 700 is off by 0.05, where rounding alone is off by 0.001 at most: 1.05, "
            "expected 1");
}

TEST(Check, AcceptsManyElementsThatAreAsFarOffAsRoundedOnes) {
  const Tensor exact = ones_with_errors([](size_t) { return 0; });
  const Tensor rounded = ones_with_errors([](size_t i) { return i % 2 == 0 ? 1e-3 : -1e-3; });
  const Tensor result = ones_with_errors([](size_t i) { return i == 700 ? 2.9e-3 : -2e-3; });
  EXPECT_TRUE(compare(result, exact, rounded).passed);
}

// Far from the rounded run, and yet within what is allowed to every element.
TEST(Check, AcceptsOneElementWithinTheTolerance) {
  const Tensor exact = ones_with_errors([](size_t) { return 0; });
  const Tensor rounded = ones_with_errors([](size_t) { return 1e-7; });
  const Tensor result = ones_with_errors([](size_t i) { return i == 700 ? 1e-4 : 0; });
  EXPECT_TRUE(compare(result, exact, rounded).passed);
}

TEST(Check, HalfPrecisionMayDifferByPercents) {
  Tensor exact = floats({1, -2, 3}, DType::bf16);
  EXPECT_TRUE(compare(floats({1.01, -2, 3}, DType::bf16), exact, exact).passed);
}

TEST(Check, NotANumberMustBeOneOnBothSides) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor exact = floats({1, nan});
  EXPECT_TRUE(compare(floats({1, nan}), exact, exact).passed);
  EXPECT_FALSE(compare(floats({nan, nan}), exact, exact).passed);
  EXPECT_FALSE(compare(floats({1, 2}), exact, exact).passed);
}

TEST(Check, WrongShapeOrDtypeFails) {
  Tensor exact = floats({1, 2});
  EXPECT_FALSE(compare(floats({1, 2, 3}), exact, exact).passed);
  EXPECT_FALSE(compare(floats({1, 2}, DType::f64), exact, exact).passed);
}

TEST(Check, IntegersMustBeEqual) {
  Tensor exact;
  exact.dtype = DType::i64;
  exact.shape = {2};
  exact.integers = {4, 5};
  Tensor other = exact;
  other.integers[1] = 6;
  EXPECT_TRUE(compare(exact, exact, exact).passed);
  EXPECT_FALSE(compare(other, exact, exact).passed);
}

// What one product of 1 + 2^-12 and 1 gives in the rounded run.
double rounded_product(const std::string& op, bool uses_tf32) {
  auto module =
      parse("func @main(%x: f32[1, 1, 1], %w: f32[1, 1, 1]) -> f32[1, 1, 1] {\n  %0 = " + op +
                "(%x, %w)\n  return %0\n}\n",
            builtin_registry());
  EXPECT_TRUE(module.ok()) << module.error().message;
  Tensor x = floats({1 + 0x1p-12}), w = floats({1});
  x.shape = w.shape = {1, 1, 1};
  auto reference = evaluate_reference(*module, {x, w}, {.uses_tf32 = uses_tf32});
  EXPECT_TRUE(reference.ok()) << reference.error().message;
  EXPECT_EQ(reference->exact[0].floats[0], 1 + 0x1p-12);
  return reference->rounded[0].floats[0];
}

TEST(Check, Tf32RoundsWhatConvolutionsReadAndNoOtherOp) {
  EXPECT_EQ(rounded_product("convolution", true), 1);
  EXPECT_EQ(rounded_product("convolution", false), 1 + 0x1p-12);
  EXPECT_EQ(rounded_product("matmul", true), 1 + 0x1p-12);
}

TEST(RandomInputs, PositionsStayWithinTheirTable) {
  LocTable locs;
  const auto model = load_text(
      "func @main(%ids: i64[8, 8]) -> f32[64, 2] {\n"
      "  %w = constant() {name = \"w\", dtype = f32, shape = [5, 2]}\n"
      "  %0 = reshape(%ids) {shape = [64]}\n"
      "  %1 = embedding(%w, %0)\n"
      "  return %1\n"
      "}\n",
      "m.lathe", {.allow_no_weights = true}, locs);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto inputs = random_inputs(*model, 0);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  std::set<double> seen;
  for (int64_t i = 0; i < 64; ++i) seen.insert(inputs->front().get(i));
  EXPECT_EQ(seen, (std::set<double>{0, 1, 2, 3, 4}));
}

TEST(Model, CountsWhatSeveralNamesShareOnce) {
  LocTable locs;
  const auto model = load_model("tests/fixtures/tied_weights.pt2", {}, locs);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->module.weights.size(), 4u);
  const Model::WeightTotals totals = model->weight_totals();
  EXPECT_EQ(totals.elements, 12 * 8 + 3 * 8);  // the embedding is the head; "tail" is in "row"
  EXPECT_EQ(totals.bytes, 4 * totals.elements);
}

TEST(Model, CountsNoWeightThatTheGraphDoesNotRead) {
  LocTable locs;
  const auto model = load_model("tests/zoo/gpt2.aten.json.gz", {.allow_no_weights = true}, locs);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->weight_totals().elements, 124439808);  // as PyTorch counts its parameters
}

TEST(Measure, TakesTurnsAndAtLeastTheRepeats) {
  std::vector<int> order;
  std::vector<std::function<Status()>> calls;
  for (int i : {0, 1})
    calls.push_back([&order, i]() -> Status {
      order.push_back(i);
      return Ok{};
    });
  auto samples = measure(calls, {.warmup = 1, .repeats = 3, .min_ms = 0});
  ASSERT_TRUE(samples.ok());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ((*samples)[0].milliseconds.size(), 3u);
}

TEST(Measure, QuantilesLieBetweenSamples) {
  Samples samples{{4, 1, 2, 3}};
  EXPECT_EQ(samples.median(), 2.5);
  EXPECT_EQ(samples.quantile(0), 1);
  EXPECT_EQ(samples.quantile(1), 4);
  EXPECT_EQ(Samples{}.median(), 0);
}

}  // namespace
}  // namespace lathe
