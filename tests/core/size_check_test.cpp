// Ranges and guards, compiled: they allow what check_sizes allows, and ask for memory once.
#include "ir/type/size_check.h"

#include <gtest/gtest.h>

#include "ir/type/bind.h"

namespace lathe {
namespace {

const std::map<std::string, DimRange> kRanges = {{"s0", {2, 40}}, {"s1", {}}};

std::vector<Guard> guards_of(const std::vector<const char*>& texts) {
  std::vector<Guard> guards;
  for (const char* text : texts) {
    Lexer lexer(text, "", nullptr);
    auto guard = parse_guard(lexer);
    EXPECT_TRUE(guard.ok()) << text;
    guards.push_back(*std::move(guard));
  }
  return guards;
}

TEST(SizeCheck, AllowsWhatIsNoError) {
  std::vector<int64_t> scratch;
  for (const auto& guards :
       {guards_of({}), guards_of({"s0*s1 <= 100"}), guards_of({"s0 % 4 == 0", "s0 != s1 + 1"}),
        guards_of({"s0 < 2*s1"}), guards_of({"s0 > s1//2", "s1 >= 3"})}) {
    const SizeCheck check(kRanges, guards);
    for (int64_t s0 = 0; s0 < 45; ++s0)
      for (int64_t s1 = 0; s1 < 45; ++s1)
        EXPECT_EQ(check.allows(std::vector<int64_t>{s0, s1}, scratch),
                  check_sizes({}, {kRanges, guards}, {{"s0", s0}, {"s1", s1}}).ok())
            << s0 << ", " << s1;
  }
}

TEST(SizeCheck, AllowsNoNegativeSizeAndNoOverflow) {
  std::vector<int64_t> scratch;
  const SizeCheck check(kRanges, guards_of({"s0*s1 <= 100"}));
  EXPECT_FALSE(check.allows(std::vector<int64_t>{4, -1}, scratch));
  EXPECT_FALSE(check.allows(std::vector<int64_t>{4, INT64_MAX / 2}, scratch));
  EXPECT_TRUE(check.allows(std::vector<int64_t>{4, 25}, scratch));
}

}  // namespace
}  // namespace lathe
