// The parts that judge random graphs see what is wrong, and only that.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <string>

#include "ir/graph/op_def.h"
#include "ir/op/all_ops.h"
#include "tests/random/generator.h"
#include "tests/random/minimise.h"
#include "tests/random/oracle.h"
#include "tests/random/workers.h"

namespace lathe::random_graphs {
namespace {

Case parsed(const std::string& text) {
  auto test = parse_case(text, "<test>");
  EXPECT_TRUE(test.ok()) << (test.ok() ? "" : test.error().message);
  return test.ok() ? *std::move(test) : Case{};
}

Expected first_output(const std::string& text) {
  auto oracle = ask_oracle(parsed(text), false);
  EXPECT_TRUE(oracle.ok()) << (oracle.ok() ? "" : oracle.error().message);
  return oracle.ok() ? oracle->outputs[0] : Expected{};
}

TEST(Oracle, AllowsRoundingAndNothingMore) {
  const Expected expected = first_output(
      "// passes: minimal\n// x: reals 1 2 seed 0\n"
      "func @main(%x: f32[8]) -> f32[8] {\n  %y = exp(%x) : f32[8]\n  return %y\n}\n");
  Tensor result = expected.exact;
  result.floats[3] *= 1 + 0x1p-23;
  EXPECT_EQ(disagreement(result, expected), "");
  result.floats[3] *= 1.0001;
  EXPECT_NE(disagreement(result, expected), "");
}

TEST(Oracle, TakesAnInfinityForWhatIsBeyondTheDtype) {
  const Expected expected = first_output(
      "// passes: minimal\n// x: integers 300 300 seed 0\n"
      "func @main(%x: f16[2]) -> f16[] {\n  %y = prod(%x) : f16[]\n  return %y\n}\n");
  Tensor result = expected.exact;
  result.floats[0] = INFINITY;
  EXPECT_EQ(disagreement(result, expected), "");
  result.floats[0] = -INFINITY;
  EXPECT_NE(disagreement(result, expected), "");
}

TEST(Oracle, WantsExactSumsExactly) {
  const Expected expected =
      first_output("func @main(%x: f32[64]) -> f32[] {\n  %y = sum(%x) : f32[]\n  return %y\n}\n");
  EXPECT_TRUE(expected.tolerance.empty());
  Tensor result = expected.exact;
  result.floats[0] += 0x1p-16;
  EXPECT_NE(disagreement(result, expected), "");
}

TEST(Oracle, WidensWithTheConditionOfTheGraph) {
  const std::string head =
      "// passes: minimal\n// x: reals 1 2 seed 0\nfunc @main(%x: f32[]) -> f32[] {\n";
  const Expected plain = first_output(head + "  %y = sin(%x) : f32[]\n  return %y\n}\n");
  const Expected hard =
      first_output(head +
                   "  %k = constant() {value = [1000.0], dtype = f32, shape = []} : f32[]\n"
                   "  %z = exp(%x) : f32[]\n  %w = mul(%z, %k) : f32[]\n  %y = sin(%w) : f32[]\n"
                   "  return %y\n}\n");
  EXPECT_GT(hard.tolerance[0], 20 * plain.tolerance[0]);
}

// PyTorch's formula rounds 1 + erf(x): where erf is close to -1, little is left of the result.
TEST(Oracle, AllowsAFormulaWhatItsPartsRound) {
  const std::string head = "// passes: minimal\n// x: quarters -4 -4 seed 0\n";
  const Expected gelu = first_output(head +
                                     "func @main(%x: f32[]) -> f32[] {\n"
                                     "  %y = gelu(%x) : f32[]\n  return %y\n}\n");
  Tensor result = gelu.exact;
  result.floats[0] -= 4 * 0.5 * 0x1p-24;
  EXPECT_EQ(disagreement(result, gelu), "");
  result.floats[0] -= 100 * 0x1p-24;
  EXPECT_NE(disagreement(result, gelu), "");
}

// Two elements that are close: the rounding of their mean shifts both, one way.
TEST(Oracle, AllowsANormalisingRowTheRoundingOfItsMean) {
  const Expected norm = first_output(
      "// passes: minimal\n// x: reals 1 1.01 seed 0\n"
      "func @main(%x: f32[1, 2]) -> f32[1, 2] {\n"
      "  %y = group_norm(%x) {num_groups = 1} : f32[1, 2]\n  return %y\n}\n");
  Tensor result = norm.exact;
  const double shift = 150 * 0x1p-25;  // by 1 / sqrt(variance + eps)
  result.floats[0] += shift;
  result.floats[1] += shift;
  EXPECT_EQ(disagreement(result, norm), "");
  result.floats[1] += 2000 * shift;
  EXPECT_NE(disagreement(result, norm), "");
}

TEST(Oracle, RefusesToJudgeAJumpOnRoundedValues) {
  const auto oracle = ask_oracle(
      parsed("// passes: minimal\n// x: reals 1 2 seed 0\nfunc @main(%x: f32[]) -> f32[] {\n"
             "  %y = exp(%x) : f32[]\n  %z = floor(%y) : f32[]\n  return %z\n}\n"),
      false);
  EXPECT_FALSE(oracle.ok());
}

TEST(Oracle, RefusesToJudgeWhatTheOrderOfFactorsDecides) {
  const auto oracle = ask_oracle(
      parsed("// passes: minimal\n// x: integers -9 9 seed 578\n"
             "func @main(%x: i64[1029]) -> f32[] {\n  %y = prod(%x) {dtype = f32} : f32[]\n"
             "  return %y\n}\n"),
      false);
  EXPECT_FALSE(oracle.ok());
}

TEST(Oracle, KnowsWhereInfinitiesDependOnTheOrder) {
  const auto judges = [](const std::string& kind, const std::string& calls) {
    return ask_oracle(parsed("// passes: minimal\n// x: reals -2 2 seed 0\n// w: " + kind +
                             " 1 2 seed 0\nfunc @main(%x: f32[2, 64], %w: f32[64]) {\n" + calls +
                             "  return %y\n}\n"),
                      false)
        .ok();
  };
  for (const std::string calls :
       {"  %y = batch_norm(%x, %w, none, %w, %w)\n",
        "  %a = reshape(%x) {shape = [2, 1, 64]}\n  %b = reshape(%w) {shape = [1, 1, 64]}\n"
        "  %y = convolution(%a, %b) {padding = [3]}\n",
        "  %a = reshape(%w) {shape = [1, 1, 8, 8]}\n"
        "  %y = upsample_bilinear2d(%a) {output_size = [5, 5]}\n"}) {
    EXPECT_TRUE(judges("reals", calls)) << calls;
    EXPECT_FALSE(judges("specials", calls)) << calls;
  }
}

// Beyond its threshold softplus is x: at a low one it jumps.
TEST(Oracle, KnowsWhereSoftplusJumps) {
  const auto judges = [](const std::string& threshold) {
    return ask_oracle(parsed("// passes: minimal\n// x: reals -2 2 seed 0\n"
                             "func @main(%x: f32[9]) -> f32[9] {\n  %y = exp(%x) : f32[9]\n"
                             "  %z = softplus(%y) {threshold = " +
                             threshold + "} : f32[9]\n  return %z\n}\n"),
                      false)
        .ok();
  };
  EXPECT_TRUE(judges("20.0"));
  EXPECT_FALSE(judges("0.0"));
}

// What is nearly zero has either sign, and infinitely much of it too.
TEST(Oracle, KnowsThatNothingIsToldOfInfinitelyMuchOfARounding) {
  const std::string text =
      "// passes: minimal\n// x: reals 1 2 seed 0\nfunc @main(%x: f32[9]) -> f32[9] {\n"
      "  %three = constant() {value = [3], dtype = f32, shape = []} : f32[]\n"
      "  %inf = constant() {value = [inf], dtype = f32, shape = []} : f32[]\n"
      "  %third = div(%x, %three) : f32[9]\n  %whole = mul(%third, %three) : f32[9]\n"
      "  %rounding = sub(%whole, %x) : f32[9]\n  %y = mul(%rounding, %inf) : f32[9]\n"
      "  return %y\n}\n";
  EXPECT_FALSE(first_output(text).is_telling);
}

// In eager a view shares its base's memory, whichever of both is written.
TEST(Oracle, KnowsThatViewsShareMemory) {
  const std::string text =
      "// passes: minimal\n// x: quarters 1 1 seed 0\nfunc @main(%x: f32[2, 2]) -> f32[2, 2] {\n"
      "  %row = select(%x) {dim = 0, index = 1} : f32[2]\n"
      "  %sum = add_(%row, %row) : f32[2]\n  return %x\n}\n";
  const Expected expected = first_output(text);
  EXPECT_EQ(expected.exact.floats, (std::vector<double>{1, 1, 2, 2}));
}

TEST(Cases, PrintAndParseBack) {
  for (uint64_t index = 0; index < 50; ++index) {
    Case test = generate(5, index);
    test.title = "A title.";
    const std::string text = print(test);
    EXPECT_EQ(print(parsed(text)), text);
  }
}

TEST(Minimiser, LeavesTheNodeThatFails) {
  // A result of softmax is returned: edits may drop what nobody reads.
  const auto has_softmax = [](const Case& test) {
    for (Value output : test.module.main().outputs)
      if (output.node->op->name == "softmax") return true;
    return false;
  };
  for (uint64_t index = 0;; ++index) {
    Case test = generate(5, index);
    if (!has_softmax(test) || test.module.main().nodes.size() < 5) continue;
    const Case small = minimise(std::move(test), has_softmax);
    EXPECT_EQ(small.module.main().nodes.size(), 1u) << print(small);
    EXPECT_EQ(small.passes, "minimal");
    return;
  }
}

TEST(Workers, TellCrashesAndHangsAndGoOn) {
  std::map<uint64_t, Verdict::Kind> kinds;
  work(
      {.count = 5, .batch = 5, .patience_s = 2},
      [](uint64_t index, Coverage&) {
        if (index == 1) std::raise(SIGKILL);
        for (volatile bool hangs = index == 3; hangs;) continue;
        return Verdict{};
      },
      [&](uint64_t index, const Verdict& verdict) {
        kinds[index] = verdict.kind;
        return true;
      });
  using Kind = Verdict::Kind;
  EXPECT_EQ(kinds, (std::map<uint64_t, Kind>{{0, Kind::agrees},
                                             {1, Kind::crashes},
                                             {2, Kind::agrees},
                                             {3, Kind::hangs},
                                             {4, Kind::agrees}}));
}

}  // namespace
}  // namespace lathe::random_graphs
