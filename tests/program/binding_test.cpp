// Sizes of a program's symbols: what binds, what is refused and in which words, and where
// temporaries lie.
#include "ir/program/binding.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "ir/program/binding_cache.h"
#include "ir/program/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr const char* kProgram = R"(
program @main(%0) -> (%3, %4) {
  dim s0 in [2, 64] hint 8
  dim s1 in [0, inf] hint 4
  guard s0*s1 <= 4096
  %0 = input "x": f32[s0, s1], 4*s0*s1 bytes
  %1 = temporary "a": f32[s0, s1], 4*s0*s1 bytes
  %2 = temporary "b": f32[s1], 4*s1 bytes
  %3 = output "y": f32[s0, s1], 4*s0*s1 bytes
  %4 = output "z": f32[s1], 4*s1 bytes
  steps arena 0 {
    kernel @copy(%0, %1) sizes (s0*s1)
    kernel @copy(%1, %2) sizes (s1)
    kernel @copy(%1, %3) sizes (s0*s1)
    kernel @copy(%2, %4) sizes (s1)
  }
}

kernel @copy(%x: f32[n0], %y: f32[n0] out) {
  dim %n0 in [0, 4611686018427387903]
  parallel %i in 0..%n0 {
    store %y[%i] = load %x[%i]
  }
}
)";

Program parse_or_die(const char* text) {
  LocTable locs;
  auto program = parse_program(text, locs, "t");
  EXPECT_TRUE(program.ok()) << program.error().message;
  return program.ok() ? *std::move(program) : Program{};
}

std::string refusal(const Program& program, std::vector<int64_t> sizes) {
  const auto binding = Binder(program).bind(sizes);
  return binding.ok() ? "" : binding.error().code + ": " + binding.error().message;
}

TEST(Binder, GivesEveryNumberOfACall) {
  const Program program = parse_or_die(kProgram);
  const auto binding = Binder(program).bind(std::vector<int64_t>{3, 5});
  ASSERT_TRUE(binding.ok()) << binding.error().message;
  EXPECT_EQ(binding->num_bytes, (std::vector<int64_t>{60, 60, 20, 60, 20}));
  EXPECT_EQ(binding->sizes, (std::vector<std::vector<int64_t>>{{15}, {5}, {15}, {5}}));
  EXPECT_EQ(binding->arena_bytes, 128);
  EXPECT_EQ(binding->offsets[1], 0);
  EXPECT_EQ(binding->offsets[2], 64);
  EXPECT_EQ(binding->offsets[0], -1);
}

TEST(Binder, RefusesWhatTheProgramForbids) {
  const Program program = parse_or_die(kProgram);
  EXPECT_EQ(refusal(program, {1, 4}),
            "dim-range: input 'x' must have 2 to 64 in dim 0 (s0), got 1");
  EXPECT_EQ(refusal(program, {65, 4}),
            "dim-range: input 'x' must have 2 to 64 in dim 0 (s0), got 65");
  EXPECT_EQ(refusal(program, {2, -1}),
            "dim-range: input 'x' must have at least 0 in dim 1 (s1), got -1");
  EXPECT_EQ(refusal(program, {64, 65}),
            "dim-range: with s0 = 64, s1 = 65: the graph is only for sizes with s0*s1 <= 4096");
  EXPECT_EQ(refusal(program, {64, 64}), "");
  EXPECT_EQ(refusal(program, {2, 0}), "");
}

TEST(Binder, RefusesSizesBeyondMemory) {
  Program program = parse_or_die(kProgram);
  program.guards.clear();
  EXPECT_EQ(refusal(program, {64, INT64_MAX}).substr(0, 10), "too-large:");
  EXPECT_EQ(refusal(program, {64, INT64_MAX / 256}).substr(0, 10), "too-large:");
}

TEST(Binder, NamesTheSymbolWithoutASize) {
  const auto program = instantiate(parse_or_die(kProgram), {{"s0", 2}});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().message, "program 'main' needs a size of 's1'");
}

TEST(Instantiate, SharesKernelsOfEqualSizes) {
  const auto program = instantiate(parse_or_die(kProgram), {{"s0", 3}, {"s1", 5}});
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_TRUE(verify(*program).ok());
  EXPECT_EQ(program->kernels.size(), 2u);
  EXPECT_TRUE(program->symbols.empty());
  EXPECT_EQ(program->arena_bytes, 128);
  EXPECT_EQ(program->buffers[3].num_bytes, Dim(60));
}

constexpr const char* kCalls = R"(
program @main(%0, %1) -> (%2) {
  dim s0 in [0, 64] hint 8
  dim s1 in [0, 64] hint 4
  %0 = input "x": f32[s0, s1], 4*s0*s1 bytes
  %1 = input "w": f32[4, 6], 96 bytes
  %2 = output "y": f32[s0, 6], 24*s0 bytes
  steps arena 0 {
    library matmul(a = %0[s0, s1] by [s1, 1], b = %1[s1, 6] by [6, 1])
        -> d = %2[s0, 6] by [6, 1] as "mm"
  }
}
)";

TEST(Binder, GivesTheSizesOfCalls) {
  const auto binding = Binder(parse_or_die(kCalls)).bind(std::vector<int64_t>{3, 4});
  ASSERT_TRUE(binding.ok()) << binding.error().message;
  EXPECT_EQ(binding->sizes[0], (std::vector<int64_t>{3, 4, 4, 4, 3}));
}

TEST(Binder, RefusesSizesAtWhichACallGoesBeyondItsBuffers) {
  const Program program = parse_or_die(kCalls);
  EXPECT_EQ(refusal(program, {3, 5}),
            "bad-value: at these sizes program 'main' cannot call matmul: operand 'b' reaches from "
            "element 0 to 29 of %1 \"w\", which has 24");
}

TEST(Binder, RefusesSumsOfNothingButNotSumsForNothing) {
  const Program program = parse_or_die(kCalls);
  EXPECT_EQ(
      refusal(program, {3, 0}),
      "bad-value: at these sizes program 'main' cannot call matmul: operand 'a' has the shape "
      "[3, 0], whose elements do not exist");
  EXPECT_EQ(refusal(program, {0, 0}), "");
}

TEST(Instantiate, LeavesOutCallsForNothing) {
  const auto some = instantiate(parse_or_die(kCalls), {{"s0", 2}, {"s1", 4}});
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_EQ(some->steps.size(), 1u);
  EXPECT_TRUE(verify(*some).ok());
  const auto none = instantiate(parse_or_die(kCalls), {{"s0", 0}, {"s1", 4}});
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_EQ(none->steps.size(), 0u);
}

TEST(BindingCache, KeepsTheLatest) {
  const Program program = parse_or_die(kProgram);
  BindingCache cache(program);
  const auto first = cache.at(std::vector<int64_t>{2, 1});
  ASSERT_TRUE(first.ok());
  std::set<const Binding*> made = {first->get()};
  for (int64_t size = 2; size <= static_cast<int64_t>(BindingCache::kCapacity); ++size) {
    made.insert(cache.at(std::vector<int64_t>{2, size})->get());
    EXPECT_EQ(cache.at(std::vector<int64_t>{2, 1})->get(), first->get());
  }
  EXPECT_EQ(made.size(), BindingCache::kCapacity);
  EXPECT_FALSE(cache.at(std::vector<int64_t>{1, 1}).ok());
  // One more than it keeps: the one that was not asked for lately goes.
  const auto second = cache.at(std::vector<int64_t>{2, 2});
  ASSERT_TRUE(cache.at(std::vector<int64_t>{3, 3}).ok());
  EXPECT_EQ(cache.at(std::vector<int64_t>{2, 1})->get(), first->get());
  EXPECT_EQ(cache.at(std::vector<int64_t>{2, 2})->get(), second->get());
}

}  // namespace
}  // namespace lathe
