// How long a graph is does not decide how deep the compiler recurses: in a web page its stack is a
// megabyte. Chains of thousands of ops compile here on a small one, down to a WebAssembly module.
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <string>

#include "backends/wasm/emit_program.h"
#include "fmt/format.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

constexpr size_t kStackBytes = 1 << 20;
constexpr int kLength = 5000;

// Runs on a thread with little stack. What overflows it ends the test program.
void run_on_small_stack(std::function<void()> act) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread;
  const auto start = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &act), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

// %0 is `first`; every later value is `next`, in which {} stands for the one before.
std::string chain(const std::string& first, const std::string& next, const std::string& last) {
  std::string text = "func @main(%x: f32[4, 4]) -> f32[4, 4] {\n  %0 = " + first + "\n";
  for (int i = 1; i < kLength; ++i)
    text += fmt::format("  %{} = {}\n", i, fmt::format(fmt::runtime(next), i - 1));
  return text + fmt::format("  %{} = {}\n  return %{}\n}}\n", kLength,
                            fmt::format(fmt::runtime(last), kLength - 1), kLength);
}

void compile(const std::string& text, const std::string& passes) {
  Result<Module> module = parse(text, builtin_registry());
  ASSERT_TRUE(module.ok()) << module.error().message;
  Unit unit{std::move(*module), {}};
  Result<Pipeline> pipeline = parse_pipeline(passes);
  ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
  PassContext context{builtin_registry(), *find_target("simd128")};
  auto report = run_pipeline(unit, *pipeline, {}, context);
  ASSERT_TRUE(report.ok()) << report.error().message;
  auto compiled = wasm::emit_program(unit.program, wasm::Isa::simd128);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
}

struct Case {
  const char* name;
  std::string text;
};

class Depth : public testing::TestWithParam<Case> {};

TEST_P(Depth, CompilesOnASmallStack) {
  for (const char* passes : {"default", "minimal"})
    run_on_small_stack([&] { compile(GetParam().text, passes); });
}

INSTANTIATE_TEST_SUITE_P(
    Chains, Depth,
    testing::Values(
        Case{"of_cheap_ops", chain("relu(%x)", "neg(%{})", "relu(%{})")},
        Case{"of_functions", chain("exp(%x)", "erf(%{})", "exp(%{})")},
        Case{"of_views",
             chain("permute(%x) {dims = [1, 0]}", "permute(%{}) {{dims = [1, 0]}}", "relu(%{})")},
        Case{"of_constants", chain("constant() {name = \"w\", dtype = f32, shape = [4, 4]}",
                                   "exp(%{})", "add(%x, %{})")},
        Case{"of_sums_of_constants", chain("constant() {name = \"w\", dtype = f32, shape = [4, 4]}",
                                           "softmax(%{}) {{dim = 1}}", "add(%x, %{})")}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace lathe
