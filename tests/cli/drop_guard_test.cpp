// Pipelines without what makes one of their guards.
#include "frontend/driver/drop_guard.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lathe {
namespace {

struct DropCase {
  const char* name;
  const char* pipeline;
  std::vector<const char*> guards;  // the first is dropped
  const char* left;                 // pipeline text; null: it stays
};

const DropCase kCases[] = {
    {"one_of_two_assumptions",
     "collect_guards{assume=\"s0 <= 8; s1 % 2 == 0\"},dce",
     {"s0 <= 8 by collect_guards", "s1 % 2 == 0 by collect_guards"},
     "collect_guards{assume=\"s1 % 2 == 0\"},dce"},
    {"the_only_assumption",
     "collect_guards{assume=\"s0*s1 <= 8\"},collect_guards",
     {"s0*s1 <= 8 by collect_guards"},
     "collect_guards,collect_guards"},
    {"what_an_op_demands", "collect_guards", {"s0 == 2*s1 by collect_guards"}, nullptr},
    {"the_only_merge", "merge_symbols,dce", {"s1 == s0 by merge_symbols"}, "dce"},
    {"one_of_two_merges",
     "merge_symbols,dce",
     {"s1 == s0 by merge_symbols", "s2 == s0 by merge_symbols"},
     "merge_symbols{symbols=s2=s0},dce"},
    {"a_merge_that_a_file_kept", "dce", {"s1 == s0 by merge_symbols"}, nullptr},
    {"a_number_by_name",
     "specialize_shapes{bindings=s0=4,s1=8}",
     {"s0 == 4 by specialize_shapes", "s1 == 8 by specialize_shapes"},
     "specialize_shapes{bindings=s1=8}"},
    {"a_number_at_capture",
     "specialize_shapes{keep=s1}",
     {"s0 == 4 by specialize_shapes"},
     "specialize_shapes{keep=s1,s0}"},
    {"the_exporters", "collect_guards,merge_symbols", {"s0 % 4 == 0"}, nullptr},
};

class DropGuard : public testing::TestWithParam<DropCase> {};

TEST_P(DropGuard, LeavesTheOthers) {
  std::vector<Guard> guards;
  for (const char* text : GetParam().guards) {
    Lexer lexer(text, "", nullptr);
    auto guard = parse_known_guard(lexer);
    ASSERT_TRUE(guard.ok()) << guard.error().message;
    guards.push_back(*std::move(guard));
  }
  const auto pipeline = parse_pipeline(GetParam().pipeline);
  ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
  const DroppedGuard dropped = drop_guard(*pipeline, guards, guards.front());
  EXPECT_EQ(dropped.stays.empty(), GetParam().left != nullptr) << dropped.stays;
  if (GetParam().left != nullptr) {
    EXPECT_EQ(print(dropped.pipeline), GetParam().left);
  }
}

INSTANTIATE_TEST_SUITE_P(Pipelines, DropGuard, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lathe
