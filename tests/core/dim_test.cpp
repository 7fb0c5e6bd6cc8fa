// Symbolic sizes: canonical form, spelling, reading, bounds and binding.
#include "ir/type/dim.h"

#include <gtest/gtest.h>

#include "ir/support/diag_codes.h"
#include "ir/type/bind.h"
#include "ir/type/guard.h"

namespace lathe {
namespace {

Dim read(std::string_view text) {
  Result<Dim> dim = parse_dim(text);
  EXPECT_TRUE(dim.ok()) << text << ": " << (dim.ok() ? "" : dim.error().message);
  return dim.ok() ? *dim : Dim(-999);
}

std::string canonical(std::string_view text) { return read(text).str(); }

std::string error_of(std::string_view text) {
  Result<Dim> dim = parse_dim(text);
  return dim.ok() ? "no error: " + dim->str() : dim.error().code + ": " + dim.error().message;
}

TEST(Dim, LinearIdentities) {
  EXPECT_EQ(canonical("s0 + s0"), "2*s0");
  EXPECT_EQ(canonical("s0 - s0"), "0");
  EXPECT_EQ(canonical("(4*s0)//4"), "s0");
  EXPECT_EQ(canonical("2*(s0 + 3) - s0"), "s0 + 6");
  EXPECT_EQ(canonical("1 - s0"), "-s0 + 1");
  EXPECT_EQ(canonical("(s0 + 1)*(s0 - 1)"), "s0*s0 - 1");
  EXPECT_EQ(read("s1*s0 + 2"), read("1 + s0*s1 + 1"));
}

TEST(Dim, DivisionAndModulo) {
  EXPECT_EQ(canonical("(4*s0 + 6)//4"), "s0 + 1");
  EXPECT_EQ(canonical("(2*s0)//4"), "s0//2");
  EXPECT_EQ(canonical("(s0 - 1)//2 + 1"), "(s0 + 1)//2");
  EXPECT_EQ(canonical("(s0//2)//3"), "s0//6");
  EXPECT_EQ(canonical("((s0 + 1)//2 + 1)//2"), "(s0 + 3)//4");
  EXPECT_EQ(canonical("(2*(s0//2) + 1)//4"), "s0//4");
  EXPECT_EQ(canonical("(128*s0)//s0"), "128");
  EXPECT_EQ(canonical("((s0 + 1)*768)//(s0 + 1)"), "768");
  EXPECT_EQ(canonical("(s0*s1*12)//(s1*4)"), "3*s0");
  EXPECT_EQ(canonical("(4*s0) % 4"), "0");
  EXPECT_EQ(canonical("(2*s0) % 4"), "2*(s0 % 2)");
  EXPECT_EQ(canonical("-7//2"), "-4");
  EXPECT_EQ(canonical("-7 % 3"), "2");
  EXPECT_EQ(canonical("7//0"), "0");
}

TEST(Dim, MaxOfManySymbolsTakesThemOneByOne) {
  std::string text = "Max(s0, s0 + 1";
  for (int i = 1; i < 500; ++i) text += ", s" + std::to_string(i);
  const std::string found = canonical(text + ", s499 - 3)");
  EXPECT_EQ(std::count(found.begin(), found.end(), ','), 499);
  EXPECT_NE(found.find("s0 + 1"), std::string::npos);
  EXPECT_EQ(found.find("- 3"), std::string::npos);
}

TEST(Dim, MaxAndMin) {
  EXPECT_EQ(canonical("Max(1, s0)"), "Max(1, s0)");
  EXPECT_EQ(canonical("Max(s0, s0 + 1)"), "s0 + 1");
  EXPECT_EQ(canonical("Min(s0, 3, s0, 2)"), "Min(2, s0)");
}

TEST(Dim, StringsReadBack) {
  for (const char* text :
       {"3*(s0//2) + 1", "-s0 + 3", "(s0 + 1) % 3", "Max(1, s0//2)*s1", "s0//(s1 + 1)",
        "-9223372036854775808", "s0//2 - 1", "-2*s0*s0", "-(s0//2)", "1 - s0 % 2"}) {
    EXPECT_EQ(read(canonical(text)), read(text)) << text;
    EXPECT_EQ(canonical(canonical(text)), canonical(text));
  }
}

TEST(Dim, Srepr) {
  EXPECT_EQ(canonical("Symbol('s0', integer=True, positive=True)"), "s0");
  EXPECT_EQ(canonical("Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))"), "2*s0 + 1");
  EXPECT_EQ(canonical("FloorDiv(Symbol('s0'), Integer(2))"), "s0//2");
  EXPECT_EQ(canonical("ModularIndexing(Symbol('s0'), Integer(2), Integer(3))"), "(s0//2) % 3");
  EXPECT_EQ(canonical("Mul(Rational(1, 2), Symbol('s0'))"), "s0//2");
  EXPECT_EQ(canonical("Pow(Symbol('s0'), Integer(2))"), "s0*s0");
  EXPECT_EQ(canonical("CeilToInt(IntTrueDiv(Symbol('s0'), Integer(2)))"), "-((-s0)//2)");
}

TEST(Dim, ReadErrors) {
  EXPECT_EQ(error_of("2*"), "syntax: expected a size, got the end of the text at column 3");
  EXPECT_EQ(error_of("s0 s1"),
            "syntax: expected the end of the size expression, got 's1' at column 4");
  EXPECT_EQ(error_of("Where(s0, 1, 2)"),
            "unsupported: 'Where' is not supported in a size expression at column 1");
  EXPECT_EQ(error_of("Float('1.5', precision=53)"),
            "unsupported: 'Float' is not supported in a size expression at column 1");
  EXPECT_EQ(error_of(std::string(5000, '(')),
            "too-large: this size expression is nested too deeply at column 65");
  EXPECT_EQ(error_of("s0 ** 1000"),
            "too-large: this size expression overflows 64 bits at column 4");
  EXPECT_EQ(error_of("9223372036854775807 * 2").substr(0, 9), "too-large");
  EXPECT_EQ(error_of("99999999999999999999").substr(0, 6), "syntax");
}

TEST(Dim, ProductsOfManySymbolsStayBounded) {
  std::string text = "(a0 + b0)";
  for (int i = 1; i < 40; ++i) text += "*(a" + std::to_string(i) + " + b" + std::to_string(i) + ")";
  EXPECT_EQ(error_of(text).substr(0, 9), "too-large");
}

TEST(Dim, OverflowAbsorbs) {
  const Dim huge = Dim(INT64_MAX) * Dim(2);
  EXPECT_TRUE(huge.is_too_large());
  EXPECT_TRUE((huge + Dim::symbol("s0")).is_too_large());
  EXPECT_TRUE(Dim::floor_div(huge, 2).is_too_large());
  EXPECT_TRUE(Dim::max(Dim(1), huge).is_too_large());
  EXPECT_EQ(huge.evaluate({}).error().code, code::kTooLarge);
}

TEST(Dim, Evaluate) {
  EXPECT_EQ(*read("2*s0 + s1//2 - 1").evaluate({{"s0", 5}, {"s1", 9}}), 13);
  EXPECT_EQ(read("s0").evaluate({}).error().message, "the symbolic size 's0' has no value");
  EXPECT_EQ(read("s0*s0").evaluate({{"s0", INT64_MAX}}).error().code, code::kTooLarge);
  EXPECT_EQ(*read("s0 % s1").evaluate({{"s0", 5}, {"s1", 0}}), 0);
}

TEST(Dim, Substitute) {
  EXPECT_EQ(read("s0//2 + s1").substitute({{"s0", Dim(8)}, {"s1", read("s2 - 4")}}).str(), "s2");
}

TEST(Dim, Bounds) {
  const std::map<std::string, DimRange> ranges = {{"s0", {2, 8}}, {"s1", {1, std::nullopt}}};
  EXPECT_EQ(read("2*s0 + 1").bounds(ranges), (DimRange{5, 17}));
  EXPECT_EQ(read("s0*s1").bounds(ranges), (DimRange{2, std::nullopt}));
  EXPECT_EQ(read("-s0").bounds(ranges), (DimRange{-8, -2}));
  EXPECT_EQ(read("s0//3").bounds(ranges), (DimRange{0, 2}));
  EXPECT_EQ(read("s1 % 4").bounds(ranges), (DimRange{0, 3}));
  EXPECT_EQ(read("Max(s0, s1)").bounds(ranges), (DimRange{2, std::nullopt}));
  EXPECT_EQ(read("u0").bounds(ranges), DimRange{});
}

TEST(BindSymbols, SolvesLinearDims) {
  const auto symbols = bind_symbols(
      {{"x", {read("2*s0 + 1"), 4}, {9, 4}}, {"y", {read("s0 + s1"), read("8*s2")}, {7, 16}}},
      {{}, {}});
  ASSERT_TRUE(symbols.ok()) << symbols.error().message;
  EXPECT_EQ(*symbols, (std::map<std::string, int64_t>{{"s0", 4}, {"s1", 3}, {"s2", 2}}));
}

TEST(BindSymbols, Errors) {
  auto message = [](const std::vector<ShapeBinding>& bindings) {
    const std::map<std::string, DimRange> ranges = {{"s0", {2, 8}}, {"s5", {0, {}}}};
    Lexer lexer("s0 % 2 == 0", "", nullptr);
    return bind_symbols(bindings, {ranges, {*parse_guard(lexer)}}).error().message;
  };
  EXPECT_EQ(message({{"x", {read("8*s0")}, {36}}}),
            "input 'x' must have shape [8*s0], got [36]: dim 0 is 36, not 8*s0");
  EXPECT_EQ(message({{"x", {3}, {3, 1}}}), "input 'x' must have rank 1 ([3]), got rank 2");
  EXPECT_EQ(message({{"x", {read("s0")}, {3}}, {"y", {read("s0")}, {4}}}),
            "input 'y' must have shape [s0], got [4]: dim 0 is 4, not s0");
  EXPECT_EQ(message({{"x", {read("s0")}, {9}}}), "input 'x' must have 2 to 8 in dim 0 (s0), got 9");
  EXPECT_EQ(
      message({{"x", {read("s0 + s1"), read("s1")}, {2, 1}}, {"y", {3, read("2*s0")}, {3, 2}}}),
      "input 'y' must have 4 to 16 in dim 1 (2*s0), got 2");
  EXPECT_EQ(message({{.name = "n", .expected = {read("s5")}, .actual = {-3}, .is_number = true}}),
            "argument 'n' (s5) must be at least 0, got -3");
  EXPECT_EQ(message({{"x", {read("s0 + s1"), read("s1")}, {9, 0}}}),
            "the symbolic size 's0' must be 2 to 8, got 9");
  EXPECT_EQ(message({{"x", {read("s0")}, {7}}}),
            "with s0 = 7: the graph is only for sizes with s0 % 2 == 0");
  EXPECT_EQ(message({{"x", {read("s3*s4")}, {9}}}),
            "the shapes of the inputs do not determine 's3' in s3*s4 of 'x'");
}

}  // namespace
}  // namespace lathe
