// The .lathe test runner's own rules: directives are read, checks match, differences are shown.
#include "tests/tools/line_checks.h"

#include <gtest/gtest.h>

#include "tests/tools/file_case.h"

namespace lathe::file_test {
namespace {

std::vector<std::string> failures_of(const std::string& directives, const std::string& output) {
  const Result<std::vector<FileCase>> cases = read_cases("// test: print\n" + directives, "t");
  if (!cases) return {cases.error().message};
  std::vector<std::string> failures;
  check_lines(cases->front().checks, output, "t", failures);
  return failures;
}

TEST(LineChecks, FollowEachOther) {
  EXPECT_TRUE(failures_of("// check: a\n// check: c", "a\nb\nc\n").empty());
  EXPECT_EQ(failures_of("// check: c\n// check: a", "a\nb\nc\n").size(), 1u);
}

TEST(LineChecks, NextIsTheVeryNextLine) {
  EXPECT_TRUE(failures_of("// check: a\n// check-next: b", "a\nb\n").empty());
  EXPECT_EQ(failures_of("// check: a\n// check-next: c", "a\nb\nc\n").size(), 1u);
  EXPECT_EQ(failures_of("// check: a\n// check-next: b", "a\n").size(), 1u);
}

TEST(LineChecks, SameIsFurtherRightOnTheLine) {
  EXPECT_TRUE(failures_of("// check: a\n// check-same: b", "a b\n").empty());
  EXPECT_EQ(failures_of("// check: b\n// check-same: a", "a b\n").size(), 1u);
}

TEST(LineChecks, NotHoldsBetweenItsNeighbours) {
  EXPECT_TRUE(failures_of("// check: a\n// check-not: c\n// check: b", "a\nb\nc\n").empty());
  EXPECT_EQ(failures_of("// check: a\n// check-not: b\n// check: c", "a\nb\nc\n").size(), 1u);
  EXPECT_EQ(failures_of("// check-not: c", "a\nb\nc\n").size(), 1u);
}

TEST(LineChecks, WhiteSpaceCountsAsOneBlank) {
  EXPECT_TRUE(failures_of("// check: a   = b", "  a =  b\n").empty());
}

TEST(LineDiff, KeepsCommonLines) {
  EXPECT_EQ(line_diff("a\nb\nc", "a\nx\nc"), "  a\n- b\n+ x\n  c\n");
}

TEST(FileCases, ErrorsPointAtTheirLine) {
  const auto cases =
      read_cases("// test: parse\nx  // error[syntax]: odd\ny  // note@-1: here\n", "t");
  ASSERT_TRUE(cases.ok());
  const std::vector<ExpectedDiag>& diags = cases->front().diags;
  ASSERT_EQ(diags.size(), 2u);
  EXPECT_EQ(diags[0].code, "syntax");
  EXPECT_EQ(diags[0].line, 2);
  EXPECT_EQ(diags[1].line, 2);
}

TEST(FileCases, ADashedLineBeginsAnother) {
  const auto cases = read_cases("// test: cse\na\n// -----\nb\n=>\nc\n", "t");
  ASSERT_TRUE(cases.ok());
  ASSERT_EQ(cases->size(), 2u);
  EXPECT_EQ((*cases)[1].action, "cse");
  EXPECT_EQ((*cases)[1].input, "\n\n\nb\n");
  EXPECT_EQ((*cases)[1].expected, "\n\n\n\n\nc\n");
}

TEST(FileCases, AMisspelledDirectiveIsAnError) {
  EXPECT_FALSE(read_cases("// test: parse\n// check-nxt: a\n", "t").ok());
  EXPECT_FALSE(read_cases("func\n", "t").ok());
}

}  // namespace
}  // namespace lathe::file_test
