// The graph evaluator.
#include "ir/graph/eval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/text.h"
#include "ir/support/diag_codes.h"
#include "tests/core/sample_ops.h"

namespace lathe {
namespace {

Module must_parse(std::string_view text) {
  Result<Module> module = parse(text, sample_ops());
  EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().message);
  return module.ok() ? *std::move(module) : Module();
}

Tensor floats(std::vector<int64_t> shape, std::vector<double> values) {
  Tensor tensor;
  tensor.shape = std::move(shape);
  tensor.floats = std::move(values);
  return tensor;
}

std::string error_of(const Module& module, const std::vector<Tensor>& inputs,
                     const EvalOptions& options = {}) {
  const auto result = evaluate(module, module.main(), inputs, options);
  return result.ok() ? "" : result.error().code + ": " + result.error().message;
}

TEST(Evaluate, RunsBodiesAndBindsSymbols) {
  const Module module = must_parse(R"(
    func @f(%x: f32[2*s0]) {
      %c = constant() {value = [10.0], dtype = f32, shape = [2*s0]}
      %y = fused([%x, %c]) { (%a: f32[2*s0], %b: f32[2*s0])
        %r = relu(%a)
        %s = add(%r, %b) {alpha = 2.0}
        return %s }
      return %y, %x
      mutates %x = %y
    })");
  const auto result = evaluate(module, module.main(), {floats({4}, {1, -1, 2, -2})});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->outputs[0].floats, (std::vector<double>{21, 20, 22, 20}));
  EXPECT_EQ(result->outputs[1].floats, (std::vector<double>{1, -1, 2, -2}));
  EXPECT_EQ(result->mutated.at(0).floats, result->outputs[0].floats);
}

TEST(Evaluate, RoundsAfterEveryOp) {
  const Module module = must_parse("func @f(%x: f32[1]) { %y = add(%x, %x) return %y }");
  const std::vector<Tensor> inputs = {floats({1}, {0.1})};
  EXPECT_EQ(evaluate(module, module.main(), inputs)->outputs[0].floats[0], double{0.2f});
  EXPECT_EQ(evaluate(module, module.main(), inputs, {.round = false})->outputs[0].floats[0], 0.2);
}

TEST(Evaluate, ReadsWeights) {
  Module module = must_parse(
      "func @f() { %w = constant() {name = \"w\", dtype = f16, shape = [2, 2]} return %w }");
  EXPECT_EQ(error_of(module, {}), "missing-weight: weight 'w' has no values");
  const std::vector<uint16_t> halves = {0x3c00, 0x4000, 0x0001, 0xfc00};
  Weight& weight = module.weights["w"];
  weight.data.type = {DType::f16, {2, 2}};
  weight.data.strides = {1, 2};
  weight.data.bytes = reinterpret_cast<const std::byte*>(halves.data());
  weight.data.num_bytes = 8;
  const auto result = evaluate(module, module.main(), {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outputs[0].floats, (std::vector<double>{1, 0x1p-24, 2, -HUGE_VAL}));
  weight.data.num_bytes = 7;
  EXPECT_EQ(error_of(module, {}).substr(0, 14), "missing-weight");
}

TEST(Evaluate, Errors) {
  const Module module = must_parse("func @f(%x: f32[s0]) { %y = relu(%x) return %y }");
  EXPECT_EQ(error_of(module, {}), "bad-value: the graph takes 1 inputs, got 0");
  EXPECT_EQ(error_of(module, {floats({2}, {1})}),
            "bad-value: input 'x' does not hold the values its shape says");
  EXPECT_EQ(error_of(module, {Tensor::zeros(DType::i64, {2})}),
            "dtype-mismatch: input 'x' must be f32, got i64");
  EXPECT_EQ(error_of(module, {floats({1, 1}, {1})}),
            "shape-mismatch: input 'x' must have rank 1 ([s0]), got rank 2");
  EXPECT_EQ(error_of(module, {floats({1}, {1})}, {.max_bytes = 4}),
            "too-large: evaluating %y = relu(%x) : f32[1] takes more than the 0 MB allowed");
  EXPECT_EQ(
      error_of(module, {floats({1}, {1})}, {.progress = [](size_t, size_t) { return false; }}),
      "stopped: the evaluation was stopped");
  const Module in_place = must_parse("func @f(%x: f32[1]) { %y = relu_(%x) return %y }");
  EXPECT_EQ(error_of(in_place, {floats({1}, {1})}),
            "bad-form: 'relu_' is in place; functionalize the graph before evaluating it");
  const Module absent = must_parse("func @f(%x: f32[2]) { %y = clamp(%x) return %y }");
  EXPECT_EQ(error_of(absent, {floats({2}, {1, 2})}),
            "unsupported: 'clamp' cannot be evaluated: not in the tests");
}

TEST(TensorBytes, RoundTrip) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    Tensor tensor = Tensor::zeros(dtype, {3});
    for (int64_t k = 0; k < 3; ++k) tensor.set(k, static_cast<double>(k));
    if (dtype == DType::b8) tensor.set(2, 1);
    const std::vector<std::byte> bytes = to_bytes(tensor);
    ASSERT_EQ(bytes.size(), static_cast<size_t>(3 * dtype_bytes(dtype)));
    const auto back = read_tensor({{dtype, {3}}, {}, bytes.data(), bytes.size(), nullptr});
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->floats, tensor.floats);
    EXPECT_EQ(back->integers, tensor.integers);
  }
}

TEST(TensorBytes, BadStridesAreErrors) {
  const std::vector<std::byte> bytes(64);
  auto code_of = [&](Shape shape, std::vector<int64_t> strides) -> std::string {
    const auto result = read_tensor(
        {{DType::f32, std::move(shape)}, std::move(strides), bytes.data(), bytes.size(), nullptr});
    return result.ok() ? "" : result.error().code;
  };
  EXPECT_EQ(code_of({4, 4}, {4, 1}), "");
  EXPECT_EQ(code_of({4, 4}, {5, 1}), code::kMissingWeight);
  EXPECT_EQ(code_of({4}, {-1}), code::kBadValue);
  EXPECT_EQ(code_of({4, 4}, {1}), code::kBadValue);
  EXPECT_EQ(code_of({4, 4}, {INT64_MAX, 1}), code::kTooLarge);
  EXPECT_EQ(code_of({int64_t{1} << 40}, {0}), code::kTooLarge);
}

}  // namespace
}  // namespace lathe
