// Locations and how errors are shown.
#include "ir/support/diag.h"

#include <gtest/gtest.h>

#include "ir/support/printable.h"

namespace lathe {
namespace {

LocRow python_row(std::string node) {
  LocRow row;
  row.kind = LocRow::Kind::python;
  row.fx_node = std::move(node);
  row.module_path = "encoder.layers.3.proj";
  row.module_class = "torch.nn.modules.linear.Linear";
  return row;
}

class DiagTest : public testing::Test {
 protected:
  DiagTest() {
    const int32_t train = locs_.add_frame(-1, {"train.py", 3, "<module>", "model(x)"});
    const int32_t model =
        locs_.add_frame(train, {"model.py", 12, "forward", "    h = self.proj(x) @ self.w"});
    const int32_t torch = locs_.add_frame(
        model, {"/env/site-packages/torch/nn/modules/linear.py", 130, "forward", ""});
    LocRow row = python_row("addmm_17");
    row.frame = torch;
    matmul_ = locs_.add(row);
    LocRow norm = python_row("norm");
    norm.frame = locs_.add_frame(train, {"model.py", 9, "forward", "x = self.norm(x)"});
    norm_ = locs_.add(norm);
  }

  LocTable locs_;
  Loc matmul_;
  Loc norm_;
};

TEST_F(DiagTest, ShowsTheUsersFrame) {
  Diag diag{"shape-mismatch", matmul_, "'matmul' needs equal inner dims, got 128 and 96"};
  diag.notes.push_back({norm_, "x is f32[s0, 128], made"});
  EXPECT_EQ(render(diag, locs_),
            "model.py:12: error[shape-mismatch]: 'matmul' needs equal inner dims, got 128 and 96\n"
            "    h = self.proj(x) @ self.w\n"
            "  in module encoder.layers.3.proj (Linear), node addmm_17\n"
            "  note: x is f32[s0, 128], made at model.py:9\n"
            "      x = self.norm(x)\n");
}

TEST_F(DiagTest, ShowsWhichPassesMadeANode) {
  const Loc fused = locs_.derive("fuse_linear", {matmul_, norm_, matmul_, Loc::unknown()});
  const Loc again = locs_.derive("choose_layout", {fused});
  const Diag diag{"bad-form", again, "wrong"};
  EXPECT_EQ(render(diag, locs_),
            "model.py:12: error[bad-form]: wrong\n"
            "    h = self.proj(x) @ self.w\n"
            "  in module encoder.layers.3.proj (Linear), node addmm_17\n"
            "  note: made by choose_layout from addmm_17\n");
  EXPECT_EQ(render(diag, locs_, {.full_chain = true}),
            "model.py:12: error[bad-form]: wrong\n"
            "    h = self.proj(x) @ self.w\n"
            "  in module encoder.layers.3.proj (Linear), node addmm_17\n"
            "  through /env/site-packages/torch/nn/modules/linear.py:130 in forward\n"
            "  called from train.py:3 in <module>\n"
            "      model(x)\n"
            "  note: made by choose_layout from addmm_17\n"
            "  note: made by fuse_linear from addmm_17, norm\n");
}

TEST_F(DiagTest, APlaceOfAnotherTableIsUnknown) {
  const Diag diag{"bad-value", norm_, "of a longer table"};
  EXPECT_EQ(render(diag, LocTable()), "error[bad-value]: of a longer table\n");
  LocTable moved_from;
  const LocTable kept = std::move(moved_from);
  EXPECT_EQ(render(diag, moved_from), render(diag, kept));
}

TEST_F(DiagTest, PointsIntoText) {
  const Loc loc = locs_.text("mine.json", 7, 24, "  \"passes\": \"default,\\-fuse_elementwise\"");
  EXPECT_EQ(render({"unknown-pass", loc, "no pass named 'fuse_elementwise'"}, locs_),
            "mine.json:7:24: error[unknown-pass]: no pass named 'fuse_elementwise'\n"
            "      \"passes\": \"default,\\-fuse_elementwise\"\n"
            "                           ^\n");
}

TEST_F(DiagTest, CutsLongLines) {
  const std::string line = std::string(300, 'a') + "X" + std::string(300, 'b');
  const std::string text = render({"syntax", locs_.text("f", 1, 301, line), "m"}, locs_);
  const size_t second = text.find('\n') + 1;
  const size_t third = text.find('\n', second) + 1;
  EXPECT_LT(text.size(), 400u);
  EXPECT_EQ(text[second + (text.find('^') - third)], 'X');
}

TEST_F(DiagTest, CutsLongMessages) {
  const std::string word(5'000'000, 'a');
  const Diag diag{"bad-value", Loc::unknown(), "no pass named '" + word + "\u00e9'", {}, {word}};
  const std::string text = render(diag, locs_);
  EXPECT_LT(text.size(), 5000);
  EXPECT_NE(text.find("aaa ... and 49980"), text.npos) << text;
  EXPECT_EQ(
      render({"bad-value", Loc::unknown(), std::string(1999, 'a') + "\u00e9"}, locs_).find("\\x"),
      std::string::npos);
}

TEST_F(DiagTest, ShowsWhatIsKnown) {
  EXPECT_EQ(render({"bad-value", Loc::unknown(), "m"}, locs_), "error[bad-value]: m\n");
  EXPECT_EQ(render({"bad-archive", locs_.text("m.pt2", 0, 0), "m"}, locs_),
            "m.pt2: error[bad-archive]: m\n");
  EXPECT_EQ(render({"bad-form", locs_.add(python_row("mm")), "m"}, locs_),
            "error[bad-form]: m\n  in module encoder.layers.3.proj (Linear), node mm\n");
  Diag diag{"unsupported-op", Loc::unknown(), "1 op is not supported"};
  diag.rows = {"aten.svd  2 uses"};
  EXPECT_EQ(render(diag, locs_),
            "error[unsupported-op]: 1 op is not supported\n  aten.svd  2 uses\n");
}

TEST_F(DiagTest, InternalErrorsSaySo) {
  const Diag diag = internal_error("broken", "passes/cse.cpp", 12);
  EXPECT_EQ(render(diag, locs_),
            "error[internal]: broken (passes/cse.cpp:12)\n"
            "  note: this is a mistake in Lathe, not in the input\n");
}

TEST_F(DiagTest, Colors) {
  EXPECT_EQ(render({"syntax", Loc::unknown(), "m"}, locs_, {.color = true}),
            "\x1b[1;31merror[syntax]\x1b[0m: m\n");
}

TEST(LocTable, InternsFramesAndDerivedRows) {
  LocTable locs;
  const int32_t a = locs.add_frame(-1, {"a.py", 1, "f", ""});
  EXPECT_EQ(locs.add_frame(-1, {"a.py", 1, "f", ""}), a);
  EXPECT_NE(locs.add_frame(a, {"a.py", 1, "f", ""}), a);
  const Loc text = locs.text("f", 1, 1);
  EXPECT_EQ(locs.derive("p", {text}), locs.derive("p", {text, text}));
  EXPECT_TRUE(locs.derive("p", {Loc::unknown()}).is_unknown());
  EXPECT_EQ(locs.origin(locs.derive("q", {locs.derive("p", {text})})), text);
  EXPECT_TRUE(locs.origin(Loc::unknown()).is_unknown());
}

TEST(LocTable, UserFrame) {
  LocTable locs;
  const int32_t user = locs.add_frame(-1, {"/x/site-packages/transformers/bert.py", 1, "f", ""});
  const int32_t torch = locs.add_frame(user, {"torch/nn/functional.py", 1, "f", ""});
  const int32_t lone = locs.add_frame(-1, {"/x/dist-packages/torch/a.py", 1, "f", ""});
  EXPECT_EQ(locs.user_frame(torch), user);
  EXPECT_EQ(locs.user_frame(lone), lone);
  EXPECT_EQ(locs.user_frame(-1), -1);
}

TEST(Nearest, FindsTypos) {
  const std::vector<std::string> words = {"fuse_pointwise", "relu", "gelu", "add"};
  EXPECT_EQ(nearest("fuse_elementwise", words), "fuse_pointwise");
  EXPECT_EQ(nearest("rleu", words), "relu");
  EXPECT_EQ(nearest("zelu", words), "relu");  // a tie goes to the first
  EXPECT_EQ(nearest("convolution", words), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), words), "");
}

// What a terminal would obey: escapes, C1 in one byte and in UTF-8, marks of direction.
TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable_line("a\x1b[31mb\r\n"), "a\\x1b[31mb\\x0d\\x0a");
  EXPECT_EQ(printable_lines("a\tb\n\x07"), "a\tb\n\\x07");
  EXPECT_EQ(printable_line("\x7f\xc2\x9b"
                           "2J\x9b"),
            "\\x7f\\x9b2J\\x9b");
  EXPECT_EQ(printable_line("\u202eevil\u2066\u2069\u200f"), "\\u202eevil\\u2066\\u2069\\u200f");
}

TEST(Printable, LeavesTextAlone) {
  const std::string text = "caf\u00e9 \u4e16\u754c \U0001f600";
  EXPECT_EQ(printable_line(text), text);
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable_line("\xff\xc0\xaf\xe2\x82"), "\\xff\\xc0\\xaf\\xe2\\x82");
  EXPECT_EQ(printable_line("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

TEST(Render, NothingFromAFileIsObeyed) {
  LocTable locs;
  const Loc loc = locs.text("m\x1b[2J.lathe", 1, 3, "\x1b]0;x\x07 %\u202e");
  Diag diag{"syntax", loc, "found '\x1b[8m'", {{loc, "note \x9b"}}, {"row \x1b[1A"}};
  const std::string text = render(diag, locs);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text, printable_lines(text));
  EXPECT_NE(text.find("m\\x1b[2J.lathe:1:3"), std::string::npos) << text;
}

}  // namespace
}  // namespace lathe
