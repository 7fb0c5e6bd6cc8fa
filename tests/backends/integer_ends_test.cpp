// 64-bit integers at the ends of their range, where a double has lost the last digits: the
// interpreter and each target give every one of them. And divisors of 0 and -1, on which hardware
// traps: they give 0 and the wrapped quotient.
#include <gtest/gtest.h>

#include <limits>

#include "backends/wasm/node/backend.h"
#include "fmt/format.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/check.h"

namespace lathe {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct Case {
  const char* name;
  // Of %y, from %x = [min, min + 1, -1, max - 1, max], %a = [max - 1] and %d = [-1, 0, -1, 0, 3].
  const char* code;
  std::vector<int64_t> expected;
};

const Case kCases[] = {
    {"clamp_from_below", "clamp(%x, %a)", {kMax - 1, kMax - 1, kMax - 1, kMax - 1, kMax}},
    {"clamp_from_above", "clamp(%x, none, %a)", {kMin, kMin + 1, -1, kMax - 1, kMax - 1}},
    {"add", "add(%x, %a)", {-2, -1, kMax - 2, -4, -3}},
    {"mul", "mul(%x, %a)", {0, kMax - 1, kMin + 2, 4, kMin + 2}},
    {"minimum", "minimum(%x, %a)", {kMin, kMin + 1, -1, kMax - 1, kMax - 1}},
    {"remainder", "remainder(%x, %a)", {kMax - 3, kMax - 2, kMax - 2, 0, 1}},
    {"floor_divide", "floor_divide(%x, %a)", {-2, -2, -1, 1, 1}},
    {"remainder_of_zero", "remainder(%x, %d)", {0, 0, 0, 0, 1}},
    {"fmod_of_zero", "fmod(%x, %d)", {0, 0, 0, 0, 1}},
    {"fmod_of_a_constant_zero", "fmod(%x, %z)", {0, 0, 0, 0, 0}},
    {"floor_divide_by_zero", "floor_divide(%x, %d)", {kMin, 0, 1, 0, kMax / 3}},
    {"trunc_divide_by_zero", "trunc_divide(%x, %d)", {kMin, 0, 1, 0, kMax / 3}},
    {"trunc_divide_by_a_constant_zero", "trunc_divide(%x, %z)", {0, 0, 0, 0, 0}},
    {"floor", "floor(%x)", {kMin, kMin + 1, -1, kMax - 1, kMax}},
    {"round", "round(%x)", {kMin, kMin + 1, -1, kMax - 1, kMax}},
    {"full",
     "full() {size = [5], fill_value = 9223372036854775806, dtype = i64}",
     {kMax - 1, kMax - 1, kMax - 1, kMax - 1, kMax - 1}},
    {"pad",
     "pad(%x) {pad = [-1, 1], value = 9223372036854775806}",
     {kMin + 1, -1, kMax - 1, kMax, kMax - 1}},
    {"diff", "diff(%x, %z, none)", {kMin, 1, kMax - 1, kMax, 1}},
    {"max_pool1d",
     "max_pool1d(%row) {kernel_size = [3], stride = [1], padding = [1]}",
     {kMin + 1, -1, kMax - 1, kMax, kMax}},
};

class IntegerEnds : public testing::TestWithParam<Case> {};

TEST_P(IntegerEnds, KeepTheirDigits) {
  const Case& test = GetParam();
  const std::string text = fmt::format(R"(func @main(%x: i64[5], %d: i64[5]) {{
  %a = constant() {{value = [9223372036854775806], dtype = i64, shape = []}}
  %z = constant() {{value = [0], dtype = i64, shape = [1]}}
  %row = reshape(%x) {{shape = [1, 1, 5]}}
  %y = {}
  return %y
}})",
                                       test.code);
  LocTable locs;
  auto model = load_text(text, "ends.lathe", {}, locs);
  ASSERT_TRUE(model.ok()) << render(model.error(), locs);
  Tensor x = Tensor::zeros(DType::i64, {5});
  x.integers = {kMin, kMin + 1, -1, kMax - 1, kMax};
  Tensor d = Tensor::zeros(DType::i64, {5});
  d.integers = {-1, 0, -1, 0, 3};
  auto reference = evaluate_reference(model->module, {x, d}, {});
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  EXPECT_EQ(reference->exact[0].integers, test.expected);
  EXPECT_EQ(reference->rounded[0].integers, test.expected);

  for (const char* target : {"cpu", "wasm"}) {
    SCOPED_TRACE(target);
    if (target == std::string("wasm") && !check_wasm("").ok()) continue;
    auto backend = make_backend(target, "");
    ASSERT_TRUE(backend.ok()) << backend.error().message;
    BuildFailure failure;
    auto built = build(*model, **backend, {.threads = 1}, failure);
    ASSERT_TRUE(built.ok()) << built.error().message;
    auto call = CallBuffers::create(built->program(), {x, d}, model->weights());
    ASSERT_TRUE(call.ok()) << call.error().message;
    ASSERT_TRUE(call->run(*built->executable).ok());
    EXPECT_EQ((*call->outputs())[0].integers, test.expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, IntegerEnds, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace lathe
