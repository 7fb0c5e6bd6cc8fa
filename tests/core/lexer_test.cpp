// The lexer of every text form.
#include "ir/support/lexer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

std::string kinds(std::string_view text) {
  constexpr const char* kNames[] = {"end",  "name",   "value", "function", "integer",
                                    "real", "string", "mark",  "bad"};
  Lexer lexer(text, "t", nullptr);
  std::string out;
  while (!lexer.at_end()) {
    const Token token = lexer.take();
    out += std::string(kNames[static_cast<int>(token.kind)]) + ":" + std::string(token.text) + " ";
  }
  return out;
}

TEST(Lexer, Tokens) {
  EXPECT_EQ(kinds("%x.1 = relu(@f)"), "value:x.1 mark:= name:relu mark:( function:f mark:) ");
  EXPECT_EQ(kinds("0..64 -> %i..8"),
            "integer:0 mark:.. integer:64 mark:-> value:i mark:.. integer:8 ");
  EXPECT_EQ(kinds("1.5 1e-5 2. 0x1.8p3 0x1f"),
            "real:1.5 real:1e-5 real:2. real:0x1.8p3 integer:0x1f ");
  EXPECT_EQ(kinds("s0//2 // rest"), "name:s0 mark:// integer:2 ");
  EXPECT_EQ(kinds("// all\na"), "name:a ");
  EXPECT_EQ(kinds("12ab \xff"), "bad:12 name:ab bad:\xff ");
}

TEST(Lexer, Numbers) {
  Lexer lexer("-9223372036854775808 9223372036854775807 -inf nan 0x10 3", "t", nullptr);
  EXPECT_EQ(*lexer.integer(), INT64_MIN);
  EXPECT_EQ(*lexer.integer(), INT64_MAX);
  EXPECT_EQ(*lexer.number(), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(*lexer.number()));
  EXPECT_EQ(*lexer.integer(), 16);
  EXPECT_EQ(*lexer.number(), 3);
}

TEST(Lexer, StringsReadBack) {
  std::string text = "a\"b\\c\n\t\x01\x7f\xc3\xa9";
  text += '\0';
  const std::string quoted = quote(text);
  Lexer lexer(quoted, "t", nullptr);
  EXPECT_EQ(*lexer.string(), text);
  // What a terminal would obey or hide, and what is no UTF-8, does not stand there as it is.
  const std::string evil = "\x1b[2J \xc2\x9b \xe2\x80\xae \xff \xc3";
  const std::string tamed = quote(evil);
  EXPECT_EQ(tamed, R"("\x1b[2J \xc2\x9b \xe2\x80\xae \xff \xc3")");
  Lexer again(tamed, "t", nullptr);
  EXPECT_EQ(*again.string(), evil);
  Lexer single("'a\\'b'", "t", nullptr);
  EXPECT_EQ(*single.string(), "a'b");
}

TEST(Lexer, RealsReadBack) {
  for (double value : {1.0, 0.1, -2.5e-300, 1e22, 123456789.0, HUGE_VAL, -0.0}) {
    const std::string text = spell_real(value);
    EXPECT_NE(text.find_first_of(".en"), text.npos) << text;
    Lexer lexer(text, "t", nullptr);
    const Result<double> back = lexer.number();
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, value);
    EXPECT_EQ(std::signbit(*back), std::signbit(value));
  }
}

TEST(Lexer, ErrorsHaveTheirPlace) {
  LocTable locs;
  Lexer lexer("a\n  b \"c", "t.lathe", &locs);
  lexer.take();
  lexer.take();
  const Diag diag = lexer.expected("a value");
  EXPECT_EQ(render(diag, locs),
            "t.lathe:2:5: error[syntax]: this string has no closing quote\n"
            "      b \"c\n"
            "        ^\n");
}

TEST(Lexer, OfLongLinesAWindowIsKept) {
  std::string text(100000, '(');
  text[49999] = '[';
  text += "\n)";
  LocTable locs;
  Lexer lexer(text, "t", &locs);
  Token token;
  for (int i = 0; i < 50000; ++i) token = lexer.take();
  const Loc loc = lexer.loc(token);
  EXPECT_EQ(locs[loc].column, 50000);
  EXPECT_LE(locs[loc].source_line.size(), 2 * LocTable::kKeptOnEachSide);
  const std::string shown(50, '(');
  EXPECT_EQ(render(Diag{code::kSyntax, loc, "here"}, locs),
            "t:1:50000: error[syntax]: here\n    ..." + shown + "[" + shown.substr(1) +
                "...\n       " + std::string(50, ' ') + "^\n");
}

// The window is not moved to the start of a character that never comes.
TEST(Lexer, ALineOfHalvesOfCharactersIsShown) {
  LocTable locs;
  const std::string line(1000, '\xa3');
  const Loc loc = locs.text("t", 1, 900, line);
  const std::string shown = render(Diag{code::kSyntax, loc, "here"}, locs);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '^'), 1) << shown;
}

}  // namespace
}  // namespace lathe
