// Guards are spelled, read, decided by ranges, and checked.
#include <gtest/gtest.h>

#include "ir/type/guard.h"

namespace lathe {
namespace {

Guard guard(const std::string& text) {
  Lexer lexer(text, "", nullptr);
  auto parsed = parse_guard(lexer);
  EXPECT_TRUE(parsed.ok() && lexer.at_end()) << text;
  return parsed.ok() ? *parsed : Guard();
}

TEST(Guard, IsSpelledAsItIsRead) {
  for (const char* text : {"s0 % 8 == 0", "s0 != 2*s1", "s0 < 4", "s0*s1 <= 4096", "s0 > s1 + 1",
                           "s0//2 >= Max(1, s1)"})
    EXPECT_EQ(to_string(guard(text)), text);
}

TEST(Guard, NeedsAComparison) {
  for (const char* text : {"s0", "s0 = 2", "== 2", "s0 ==", "s0 =< 3", ""}) {
    Lexer lexer(text, "", nullptr);
    const auto parsed = parse_guard(lexer);
    EXPECT_FALSE(parsed.ok() && lexer.at_end()) << text;
  }
}

struct Decided {
  const char* text;
  std::optional<bool> expected;
};

// s0 in [2, 8], s1 from 9 on, s2 anything.
class Decide : public testing::TestWithParam<Decided> {};
TEST_P(Decide, ByRanges) {
  const std::map<std::string, DimRange> ranges = {{"s0", {2, 8}}, {"s1", {9, {}}}};
  EXPECT_EQ(decide(guard(GetParam().text), ranges), GetParam().expected) << GetParam().text;
}
INSTANTIATE_TEST_SUITE_P(
    Guard, Decide,
    testing::Values(Decided{"s0 < s1", true}, Decided{"s0 <= s1", true}, Decided{"s0 != s1", true},
                    Decided{"s0 == s1", false}, Decided{"s0 > s1", false},
                    Decided{"s0 >= s1", false}, Decided{"s0 >= 2", true},
                    Decided{"s0 > 2", std::nullopt}, Decided{"s0 < 2", false},
                    Decided{"s0 <= 8", true}, Decided{"s0 <= 7", std::nullopt},
                    Decided{"s0 == 2", std::nullopt}, Decided{"s0 != 9", true},
                    Decided{"s0 == 1", false}, Decided{"s2 == s2", true},
                    Decided{"s2 != s2", false}, Decided{"s2 == 0", std::nullopt},
                    Decided{"s0 % 8 == 0", std::nullopt}, Decided{"8*s2 % 8 == 0", true},
                    Decided{"3 == 3", true}, Decided{"3 > 3", false},
                    Decided{"9223372036854775807 > -9223372036854775807", true}));

TEST(Guard, NamesTheSizesThatItForbids) {
  Guard divides = guard("s0 % 8 == 0");
  divides.cause = "the model";
  const std::vector<Guard> guards = {guard("s0 >= s1"), divides};
  EXPECT_TRUE(check_guards(guards, {{"s0", 16}, {"s1", 3}}).ok());
  const Status odd = check_guards(guards, {{"s0", 9}, {"s1", 3}});
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().message,
            "with s0 = 9: the graph is only for sizes with s0 % 8 == 0 (the model)");
  const Status less = check_guards(guards, {{"s0", 8}, {"s1", 30}});
  ASSERT_FALSE(less.ok());
  EXPECT_EQ(less.error().message,
            "with s0 = 8, s1 = 30: the graph is only for sizes with s0 >= s1");
}

TEST(Guard, DoesNotOverflow) {
  Lexer lexer("9223372036854775807*2*s0 == 1", "", nullptr);
  EXPECT_FALSE(parse_guard(lexer).ok());
  const Status status = check_guards({guard("s0*s1 <= 4096")}, {{"s0", INT64_MAX}, {"s1", 3}});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "the guard 's0*s1 <= 4096' overflows 64 bits");
}

// What is not bound is not judged.
TEST(Guard, WaitsForSizes) { EXPECT_TRUE(check_guards({guard("s0 == 2*s1")}, {{"s0", 3}}).ok()); }

}  // namespace
}  // namespace lathe
