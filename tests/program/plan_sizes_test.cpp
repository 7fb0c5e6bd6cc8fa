// What a program over sizes has in its arena, planned at many of them: nothing lies on what is
// alive, and the arena is that of a program whose sizes are numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "frontend/driver/build.h"
#include "ir/program/arena.h"
#include "ir/program/binding.h"
#include "ir/program/verify.h"
#include "ir/target/target.h"
#include "tests/models/model_case.h"
#include "tests/program/sizes.h"

namespace lathe {
namespace {

constexpr int kDraws = 12;
constexpr int64_t kFarEnough = 300;

Program lowered(const Model& model, const char* target, const CompileRequest& request) {
  BuildFailure failure;
  auto made = lower(model, *find_target(target), request, failure);
  EXPECT_TRUE(made.ok()) << render(made.error(), failure.locs);
  return made.ok() ? std::move(made->unit.program) : Program();
}

// Both ends of every range, then any.
Sizes draw(const Program& program, int number, std::mt19937& random) {
  Sizes sizes;
  for (const auto& [symbol, range] : program.symbols) {
    const int64_t least = range.min.value_or(0),
                  most = std::max(least, std::min(range.max.value_or(kFarEnough), kFarEnough));
    sizes[symbol] = number == 0   ? least
                    : number == 1 ? most
                                  : std::uniform_int_distribution<int64_t>(least, most)(random);
  }
  return sizes;
}

void expect_planned(const Program& program, const Program& numbers, const Sizes& sizes) {
  EXPECT_TRUE(verify(numbers).ok());  // that what is alive together lies apart, too
  std::vector<Lifetime> lives = lifetimes(numbers, numbers.steps);
  for (Lifetime& life : lives)
    life.bytes = aligned(numbers.buffers[static_cast<size_t>(life.id)].num_bytes.value());
  EXPECT_GE(numbers.arena_bytes, most_alive(lives, numbers.steps.size()));
  EXPECT_EQ(numbers.arena_bytes, place(lives));
  auto values = ordered_sizes(program, sizes);
  ASSERT_TRUE(values.ok());
  auto binding = Binder(program).bind(*values);
  ASSERT_TRUE(binding.ok()) << binding.error().message;
  EXPECT_EQ(binding->arena_bytes, numbers.arena_bytes);
}

class SizedPlan : public testing::TestWithParam<std::string> {};

TEST_P(SizedPlan, IsThatOfNumbers) {
  auto model = load_seeded_model(GetParam());
  ASSERT_TRUE(model.ok()) << model.error().message;
  if (model->dims.empty()) return;  // of one size
  CompileRequest request;
  request.passes = "default,-specialize_shapes";
  for (const char* target : {"avx2", "avx512", "simd128", "sm_90"}) {
    const Program program = lowered(*model, target, request);
    ASSERT_FALSE(program.symbols.empty()) << target;
    std::mt19937 random(7);
    int served = 0;
    for (int i = 0; i < kDraws; ++i) {
      const Sizes sizes = draw(program, i, random);
      std::string text = target;
      for (const auto& [symbol, size] : sizes) text += fmt::format(" {}={}", symbol, size);
      SCOPED_TRACE(text);
      auto numbers = instantiate(program, sizes);
      if (!numbers.ok()) continue;  // a guard
      ++served;
      expect_planned(program, *numbers, sizes);
      model->dims = sizes;
      const Program own = lowered(*model, target, {});
      // Of positions that weights hold, init makes the keys where sizes are numbers.
      int64_t keys = 0;
      for (const Launch& step : program.steps)
        if (std::holds_alternative<AssertLaunch>(step.kind)) keys += kBufferAlignment;
      EXPECT_GE(numbers->arena_bytes, own.arena_bytes);
      EXPECT_LE(numbers->arena_bytes, own.arena_bytes + keys);
    }
    EXPECT_GT(served, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SizedPlan,
                         testing::ValuesIn(files_with_ending("tests/fixtures", ".pt2")),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
