// What follows from facts about sizes is what holds at every point that the facts allow.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/type/size_facts.h"

namespace lathe {
namespace {

Guard guard(const std::string& text) {
  Lexer lexer(text, "", nullptr);
  auto parsed = parse_guard(lexer);
  EXPECT_TRUE(parsed.ok() && lexer.at_end()) << text;
  return parsed.ok() ? *parsed : Guard();
}

std::optional<bool> decide(const SizeFacts& facts, const std::string& text) {
  const Guard asked = guard(text);
  return facts.decide(asked.relation, asked.left, asked.right);
}

struct Question {
  const char* text;
  std::optional<bool> expected;
};

// s0 in [2, 8], s1 from 9 on, s2 anything, and facts.
class SizeFactsDecide : public testing::TestWithParam<Question> {};
TEST_P(SizeFactsDecide, WhatFollows) {
  SizeFacts facts({{"s0", {2, 8}}, {"s1", {9, {}}}, {"s3", {1, 100}}, {"s5", {7, 7}}});
  for (const char* fact :
       {"s2 == 2*s1", "s3 % 8 == 0", "(s0 + s4) % 3 == 1", "s6 <= s7", "s8 != s9", "s6*s7 == 12"}) {
    const Status status = facts.require(guard(fact));
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  EXPECT_EQ(decide(facts, GetParam().text), GetParam().expected);
}
INSTANTIATE_TEST_SUITE_P(
    Sizes, SizeFactsDecide,
    testing::Values(
        Question{"s0 < s1", true}, Question{"s0 == s1", false}, Question{"s0 == 3", std::nullopt},
        Question{"s2 == 2*s1", true}, Question{"s2//2 == s1", true}, Question{"s2 % 2 == 0", true},
        Question{"s2 >= 18", true}, Question{"s2 == s1", false}, Question{"s3 % 4 == 0", true},
        Question{"s3 % 16 == 0", std::nullopt}, Question{"s3//8*8 == s3", true},
        Question{"s3 == 12", false}, Question{"s3 >= 8", true}, Question{"s3 <= 96", true},
        Question{"(s0 + s4 + 2) % 3 == 0", true}, Question{"(s0 + s4) % 3 == 0", false},
        Question{"s6 < s7 + 1", true}, Question{"s6 > s7", false}, Question{"s8 == s9", false},
        Question{"s9 != s8", true}, Question{"s6*s7 == 12", true}, Question{"s6*s7 < 12", false},
        Question{"2*s0 == 2*s10 + 1", false}, Question{"Min(s10, 4) <= s10", true},
        Question{"Max(s10, 4) < s10", false}, Question{"Min(s10, s11) == s10 + 1", false},
        Question{"s10//2*2 <= s10", true}, Question{"s10//2*2 + 1 >= s10", true},
        Question{"s10//2*2 == s10", std::nullopt}, Question{"s5 == 7", true},
        Question{"s5*s0 == 7*s0", true}, Question{"s10*Min(1, s0) == s10", true},
        Question{"s10*Max(s0, s1) == s0*s10", std::nullopt},
        Question{"s10*Max(s0, s1) == s1*s10", true},
        Question{"s10*Min(3, s0) == 3*s10", std::nullopt}, Question{"3 < 4", true},
        Question{"9223372036854775807 > -9223372036854775807", true}));

TEST(SizeFacts, KeepWhatDoesNotFollow) {
  SizeFacts facts({{"s0", {2, 64}}});
  for (const char* text : {"s0 >= 2", "s0 == 2*s1", "s0 % 2 == 0", "s0 == 2*s1", "s1 <= 32",
                           "s0 % 4 == 0", "s1 % 2 == 0"})
    EXPECT_TRUE(facts.require(guard(text)).ok()) << text;
  std::vector<std::string> texts;
  for (const Guard& kept : facts.guards()) texts.push_back(to_string(kept));
  EXPECT_EQ(texts, (std::vector<std::string>{"s0 == 2*s1", "s0 % 4 == 0"}));
  EXPECT_EQ(facts.bounds(Dim::symbol("s1")), (DimRange{2, 32}));
}

std::string refusal(SizeFacts facts, const std::string& text) {
  Guard asked = guard(text);
  asked.cause = "'cat' needs equal sizes";
  const Status status = facts.require(std::move(asked));
  return status.ok() ? "" : status.error().message;
}

TEST(SizeFacts, RefuseWhatCannotHold) {
  SizeFacts facts({{"s0", {2, 8}}}, {{"s0", 4}, {"s1", 5}});
  EXPECT_EQ(refusal(facts, "s0 == 9"),
            "'cat' needs equal sizes: no s0 in the specified range 2 <= s0 <= 8 satisfies s0 == 9");
  EXPECT_EQ(refusal(facts, "3 == 4"), "'cat' needs equal sizes: nothing satisfies 3 == 4");
  EXPECT_EQ(refusal(facts, "s0 == s1"),
            "with s0 = 4, s1 = 5: the graph is only for sizes with s0 == s1 ('cat' needs equal "
            "sizes)");
  ASSERT_TRUE(facts.require(guard("s0 == 2*s2")).ok());
  EXPECT_EQ(refusal(facts, "s2 == 2*s0"),
            "'cat' needs equal sizes: no s2, s0 in the specified range 2 <= s0 <= 8 satisfy "
            "s2 == 2*s0 beside s0 == 2*s2");
  EXPECT_EQ(refusal(facts, "9223372036854775807*s0 == -5*s0"),
            "the guard '9223372036854775807*s0 == -5*s0' overflows 64 bits");
}

// Texts may hold more than a search can: what is too much is not decided.
TEST(SizeFacts, AreManyWithoutHarm) {
  SizeFacts facts({});
  for (int i = 0; i < 2000; ++i) {
    const std::string a = "a" + std::to_string(i), b = "a" + std::to_string(i + 1);
    ASSERT_TRUE(facts.require(guard(a + " <= " + b)).ok());
  }
  EXPECT_EQ(facts.guards().size(), 2000u);
  Dim nested = Dim::symbol("s0");
  for (int i = 0; i < 6; ++i) {
    const Dim half = Dim::floor_div(nested, 2);
    nested = Dim::max(half, Dim::min(Dim::symbol("s1") + i, nested)) + i;
  }
  EXPECT_FALSE(nested.is_too_large());
  EXPECT_EQ(facts.decide(Relation::eq, nested, Dim::symbol("s3")), std::nullopt);
  Dim sum = 1;
  for (int i = 0; i < 400; ++i) sum = sum + Dim(i + 2) * Dim::symbol("b" + std::to_string(i));
  for (int i = 0; i < 200; ++i)
    EXPECT_TRUE(facts.require({sum, Relation::lt, Dim(i) * Dim::symbol("s4")}).ok());
}

// --- any sizes

class RandomSizes {
 public:
  explicit RandomSizes(unsigned seed) : random_(seed) {}

  int64_t number(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Dim symbol() { return Dim::symbol("s" + std::to_string(number(0, 2))); }
  Dim dim(int depth) {
    const int64_t kind = depth == 0 ? number(0, 1) : number(0, 9);
    if (kind == 0) return number(-6, 12);
    if (kind <= 3) return symbol();
    const Dim left = dim(depth - 1);
    if (kind == 4) return left + dim(depth - 1);
    if (kind == 5) return left - dim(depth - 1);
    if (kind == 6) return left * (number(0, 2) == 0 ? symbol() : Dim(number(-3, 4)));
    if (kind == 7)
      return number(0, 1) == 0 ? Dim::max(left, dim(depth - 1)) : Dim::min(left, dim(depth - 1));
    const Dim divisor = number(0, 3) == 0 ? symbol() : Dim(number(1, 5));  // never 0
    return kind == 8 ? Dim::floor_div(left, divisor) : Dim::mod(left, divisor);
  }
  Guard comparison() {
    const auto relation = static_cast<Relation>(number(0, 5));
    if (number(0, 3) == 0) return {Dim::mod(dim(1), number(2, 4)), Relation::eq, number(0, 1)};
    return {dim(2), relation, dim(2)};
  }

 private:
  std::mt19937 random_;
};

using Point = std::map<std::string, int64_t>;

bool holds(const Guard& guard, const Point& point) {
  return *decide(substitute(guard, {point.begin(), point.end()}), {});
}

class AnySizes : public testing::TestWithParam<unsigned> {};
TEST_P(AnySizes, NeverContradictEvaluation) {
  RandomSizes random(GetParam());
  int num_decided = 0;
  for (int round = 0; round < 60; ++round) {
    std::map<std::string, DimRange> ranges;
    std::vector<Point> points = {{}};
    for (const char* symbol : {"s0", "s1", "s2"}) {
      const int64_t low = random.number(1, 4), high = low + random.number(0, 6);
      ranges[symbol] = {low, high};
      std::vector<Point> more;
      for (Point& point : points)
        for (point[symbol] = low; point[symbol] <= high; ++point[symbol]) more.push_back(point);
      points = std::move(more);
    }
    SizeFacts facts(ranges);
    const Point witness =
        points[static_cast<size_t>(random.number(0, static_cast<int64_t>(points.size()) - 1))];
    for (int i = 0; i < 4; ++i) {
      const Guard fact = random.comparison();
      if (!holds(fact, witness)) continue;
      const Status status = facts.require(fact);
      ASSERT_TRUE(status.ok()) << to_string(fact) << ": " << status.error().message;
      points.erase(std::remove_if(points.begin(), points.end(),
                                  [&](const Point& point) { return !holds(fact, point); }),
                   points.end());
    }
    for (int i = 0; i < 20; ++i) {
      const Guard asked = random.comparison();
      const auto verdict = facts.decide(asked.relation, asked.left, asked.right);
      const DimRange bounds = facts.bounds(asked.left);
      num_decided += verdict.has_value();
      for (const Point& point : points) {
        ASSERT_TRUE(!verdict || *verdict == holds(asked, point)) << to_string(asked);
        const int64_t value = *asked.left.evaluate(point);
        ASSERT_TRUE((!bounds.min || value >= *bounds.min) && (!bounds.max || value <= *bounds.max))
            << asked.left.str() << " = " << value;
      }
    }
  }
  EXPECT_GT(num_decided, 300);  // of 1200
}
INSTANTIATE_TEST_SUITE_P(Seeds, AnySizes, testing::Range(0u, 20u));

}  // namespace
}  // namespace lathe
