// What init makes is told apart by what it is made of and how, not by its place in the program.
#include "ir/program/provenance.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/program/text.h"

namespace lathe {
namespace {

// `init` makes %2, %3 and %4 of the weights %0 and %1.
Program program(const std::string& init) {
  LocTable locs;
  auto parsed = parse_program(fmt::format(R"(
program @main() -> (%2, %3) {{
  %0 = weight "a": f32[4], 16 bytes of "first"
  %1 = weight "b": f32[4], 16 bytes of "second"
  %2 = persistent "p": f32[4], 16 bytes
  %3 = persistent "q": f32[4], 16 bytes
  %4 = temporary "t": f32[4], 16 bytes at 0
  init arena 64 {{
{}  }}
  steps arena 0 {{
  }}
}}

kernel @doubled(%x: f32[4], %y: f32[4] out) {{
  parallel %i in 0..4 {{
    store %y[%i] = load %x[%i] * 2.0
  }}
}}

kernel @tripled(%x: f32[4], %y: f32[4] out) {{
  parallel %i in 0..4 {{
    store %y[%i] = load %x[%i] * 3.0
  }}
}}

kernel @half(%x: f32[2], %y: f32[2] out) {{
  parallel %i in 0..2 {{
    store %y[%i] = load %x[%i] * 2.0
  }}
}}
)",
                                          init),
                              locs);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.ok() ? *std::move(parsed) : Program{};
}

// Of %2 and %3.
std::pair<int64_t, int64_t> numbers(Provenances& known, const std::string& init) {
  const std::vector<int64_t> of = known.of(program(init));
  EXPECT_EQ(of.size(), 5U);
  for (size_t i : {0, 1, 4}) EXPECT_EQ(of[i], -1);
  return {of[2], of[3]};
}

TEST(Provenance, IsTheSameForTheSameKernelOfTheSameWeight) {
  Provenances known;
  const auto [p, q] = numbers(known, "    kernel @doubled(%0, %2)\n    kernel @tripled(%1, %3)\n");
  const auto [r, s] = numbers(known, "    kernel @tripled(%1, %2)\n    kernel @doubled(%0, %3)\n");
  EXPECT_GE(p, 0);
  EXPECT_NE(p, q);
  EXPECT_EQ(p, s);
  EXPECT_EQ(q, r);
}

TEST(Provenance, DiffersByWeightKernelAndPlace) {
  Provenances known;
  const auto [p, q] = numbers(known, "    kernel @doubled(%0, %2)\n    kernel @doubled(%1, %3)\n");
  EXPECT_NE(p, q);
  const auto [r, s] = numbers(known, "    kernel @doubled(%0, %2)\n    kernel @tripled(%0, %3)\n");
  EXPECT_EQ(p, r);
  EXPECT_NE(r, s);
  const auto [t, u] = numbers(known, "    kernel @half(%0, %2)\n    copy %0 to %3\n");
  EXPECT_NE(t, p);
  EXPECT_NE(u, p);
  EXPECT_NE(t, u);
}

TEST(Provenance, GoesThroughTemporariesAndCountsEachWriter) {
  Provenances known;
  const auto [p, q] = numbers(known,
                              "    kernel @doubled(%0, %4)\n    kernel @tripled(%4, %2)\n"
                              "    kernel @doubled(%1, %4)\n    kernel @tripled(%4, %3)\n");
  EXPECT_NE(p, q);
  const auto [r, s] = numbers(known,
                              "    kernel @doubled(%0, %4)\n    kernel @tripled(%4, %3)\n"
                              "    kernel @half(%1, %3)\n    kernel @tripled(%4, %2)\n");
  EXPECT_EQ(p, r);
  EXPECT_NE(s, p);
  EXPECT_NE(s, q);
}

}  // namespace
}  // namespace lathe
