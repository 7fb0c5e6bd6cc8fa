// The text form: what prints parses back, and each mistake has its error at its place.
#include "ir/graph/text.h"

#include <gtest/gtest.h>


#include "ir/graph/builder.h"
#include "ir/graph/verify.h"
#include "ir/support/diag_codes.h"
#include "tests/core/sample_ops.h"

namespace lathe {
namespace {

Module must_parse(std::string_view text) {
  LocTable locs;
  Result<Module> module = parse(text, sample_ops(), "test.lathe", &locs);
  EXPECT_TRUE(module.ok()) << render(module.error(), locs);
  return module.ok() ? *std::move(module) : Module();
}

std::string error_of(std::string_view text) {
  LocTable locs;
  const Result<Module> module = parse(text, sample_ops(), "t", &locs);
  if (module.ok()) return "no error:\n" + print(*module);
  return render(module.error(), locs);
}

std::string headline(std::string_view text) {
  const std::string rendered = error_of(text);
  return rendered.substr(0, rendered.find('\n'));
}

// The message of an error in `statement`, which follows a few definitions.
std::string error_in(const std::string& statement) {
  const std::string text = "func @f(%x: f32[4], %y: f32[3], %s: f32[s0]) {\n" + statement;
  return headline(text);
}

constexpr std::string_view kEverything = R"(dim s0 in [1, 4096] hint 8
dim s1 in [2, inf]
dim s2 in [-9223372036854775808, 9223372036854775807] hint -3
guard s0 % 8 == 0 because "L['x'].size()[0] % 8 == 0"
guard s0 <= s1
guard s0 == 2*s1 because "'matmul' needs equal inner dims" by collect_guards

func @main(%x: f32[s0, 128], %y: f32[2*s0 + 1, s1//2]) -> f32[s0, 128], bf16[], f32[2*s0, 128] {
  %w = constant() {name = "a \"quoted\" name", dtype = f32, shape = [1, 128]} : f32[1, 128]
  %c = constant() {value = [1.0, -2.5, inf, nan, 1e-30], dtype = bf16, shape = []} : bf16[]
  %h = add(%x, %w) {alpha = 0.5} : f32[s0, 128]
  %r = relu_(%h) : f32[s0, 128]
  %p = clamp(%r, none, %x) : f32[s0, 128]
  %k = clamp(%p) : f32[s0, 128] layout(1, 0)
  %l = cat([%x, %k]) : f32[2*s0, 128]
  %n, %n.1 = halve(%l) : f32[s0, 128], f32[s0, 128]
  check(%n.1)
  %o = mystery(%n) {mode = "x\n", axes = [1, -2], flags = [true, false]} : f32[s0, 128]
  %p_1 = mystery(%o) {order = layout(1, 0), size = s0//2 + 1} : f32[s0, 128]
  %m = mystery(%p_1) {keep = true, scales = [1.0]} : f32[s0, 128]
  %f = fused([%m, %n.1]) {
    (%a: f32[s0, 128], %b: f32[s0, 128])
    %x = add(%a, %b) : f32[s0, 128]
    return %x
  } : f32[s0, 128]
  return %f, %c, %l
  mutates "stats.mean" = %w
  mutates %x = %r
}

func @other() {
  return
}
)";

TEST(Text, PrintsWhatItParsed) { EXPECT_EQ(print(must_parse(kEverything)), kEverything); }

TEST(Text, LocationsRoundTrip) {
  Module module = must_parse("func @f(%x: f32[4]) { %y = relu(%x) %z = relu(%y) return %z }");
  LocRow row;
  row.kind = LocRow::Kind::python;
  row.fx_node = "relu";
  row.module_class = "torch.nn.ReLU";
  row.frame = module.locs.add_frame(module.locs.add_frame(-1, {"train.py", 3, "<module>", "m(x)"}),
                                    {"model.py", 12, "forward", "return F.relu(x)"});
  const Loc python = module.locs.add(row);
  Node& first = *module.main().nodes[0];
  module.main().nodes[1]->loc = module.locs.derive("fuse", {first.loc, python});
  const std::string text = print(module, {.locations = true});
  EXPECT_NE(text.find("%z = relu(%y) : f32[4] @4\n"), text.npos) << text;
  EXPECT_NE(text.find("  @3 = python \"relu\" \"\" \"\" \"torch.nn.ReLU\" at \"model.py\":12 "
                      "\"forward\" \"return F.relu(x)\" from \"train.py\":3 \"<module>\" "
                      "\"m(x)\"\n  @4 = derived \"fuse\" [@2, @3]\n"),
            text.npos)
      << text;
  EXPECT_EQ(print(must_parse(text), {.locations = true}), text);
}

TEST(Text, PlacesInLongLinesRoundTrip) {
  Module module = must_parse("func @f(%x: f32[4]) { %y = relu(%x) return %y }");
  const std::string line = std::string(1000, ' ') + "%y = relu(%x)";
  module.main().nodes[0]->loc = module.locs.text("long.lathe", 7, 1001, line);
  const std::string text = print(module, {.locations = true});
  EXPECT_NE(text.find("%y = relu(%x)\" behind 872\n"), text.npos) << text;
  EXPECT_EQ(print(must_parse(text), {.locations = true}), text);
}

TEST(Text, LargeIntegersKeepTheirDigits) {
  constexpr std::string_view kText = R"(func @main() -> i64[2] {
  %c = constant() {value = [-9223372036854775808, 1], dtype = i64, shape = [2]} : i64[2]
  return %c
}
)";
  EXPECT_EQ(print(must_parse(kText)), kText);
  EXPECT_NE(error_in("%c = constant() {value = [9007199254740993, 0.5], dtype = i64, shape = [2]}")
                .find("stands among fractions"),
            std::string::npos);
}

TEST(Text, TypesAreOptional) {
  const Module module = must_parse("func @f(%x: f32[4]) { // no types\n %y = relu(%x) return %y }");
  EXPECT_EQ(print(module.main()),
            "func @f(%x: f32[4]) -> f32[4] {\n  %y = relu(%x) : f32[4]\n  return %y\n}\n");
}

TEST(Text, SecondResultsMayHaveNames) {
  const Module module =
      must_parse("func @f(%x: f32[4]) { %a, %b = halve(%x) %c = add(%a.1, %b) return %c }");
  EXPECT_EQ(print(*module.main().nodes[1]), "%c = add(%a.1, %a.1) : f32[2]");
}

TEST(Text, LongSignaturesBreak) {
  std::string text = "func @f(";
  for (char c = 'a'; c < 'i'; ++c)
    text += std::string(c == 'a' ? "" : ", ") + "%" + c + ": f32[1, 128]";
  const Module module = must_parse(text + ") { return }");
  EXPECT_EQ(print(module).find("func @f(\n    %a: f32[1, 128],\n    %b: f32"), 0u);
  EXPECT_EQ(print(must_parse(print(module))), print(module));
}

TEST(Text, HashIgnoresNamesAndLocations) {
  auto hash = [](std::string_view text) { return structural_hash(must_parse(text)); };
  const uint64_t expected = hash("func @f(%x: f32[4]) { %y = relu(%x) return %y }");
  EXPECT_EQ(hash("\nfunc @g(%a: f32[4]) {\n %b = relu(%a) return %b }"), expected);
  EXPECT_NE(hash("func @f(%x: f32[4]) { %y = relu(%x) return %x }"), expected);
  EXPECT_NE(hash("func @f(%x: f32[5]) { %y = relu(%x) return %y }"), expected);
  EXPECT_NE(hash("func @f(%x: f32[4]) { %y = relu_(%x) return %y }"), expected);
}

TEST(ParseErrors, ShowTheLine) {
  EXPECT_EQ(error_of("func @f(%x: f32[3], %y: f32[4]) {\n  %0 = add(%x, %y)\n}"),
            "t:2:8: error[shape-mismatch]: 'add' cannot broadcast [3] with [4]\n"
            "      %0 = add(%x, %y)\n"
            "           ^\n");
}

TEST(ParseErrors, Statements) {
  EXPECT_EQ(error_in("%a = rleu(%x)"),
            "t:2:6: error[unknown-op]: no op named 'rleu'; did you mean 'relu'?");
  EXPECT_EQ(error_in("%a = relu(%xx)"),
            "t:2:11: error[undefined-value]: no value named '%xx' above; did you mean '%x'?");
  EXPECT_EQ(error_in("%x = relu(%x)"),
            "t:2:1: error[redefined-value]: value '%x' is defined twice");
  EXPECT_EQ(error_in("%a = relu(%x, %y)"),
            "t:2:15: error[operand-count]: 'relu' takes 1 operands, got more");
  EXPECT_EQ(error_in("%a = add(%x)"),
            "t:2:6: error[operand-count]: 'add' needs its operand 'other'");
  EXPECT_EQ(error_in("%a = relu(none)"),
            "t:2:6: error[operand-count]: 'relu' needs its operand 'self'");
  EXPECT_EQ(error_in("%a = cat(%x)"),
            "t:2:10: error[operand-count]: operand 'tensors' of 'cat' is a list, written [%a, %b]");
  EXPECT_EQ(error_in("%a, %b = relu(%x)"),
            "t:2:1: error[type-mismatch]: 'relu' has 1 results, but 2 are named");
  EXPECT_EQ(error_in("%a = relu(%x) : f32[5]"),
            "t:2:17: error[type-mismatch]: 'relu' gives f32[4], not the type written here");
  EXPECT_EQ(
      error_in("%a = param()"),
      "t:2:6: error[unsupported]: the result of 'param' cannot be inferred: not in the tests");
  EXPECT_EQ(error_in("relu(%x) }"),
            "t:2:10: error[syntax]: expected a statement or 'return', got '}'");
  EXPECT_EQ(error_in("return %x"), "t:2:10: error[syntax]: expected '}', got the end of the text");
}

TEST(ParseErrors, Attributes) {
  EXPECT_EQ(error_in("%a = cat([%x]) {dmi = 0}"),
            "t:2:17: error[attribute]: 'cat' has no attribute 'dmi'; did you mean 'dim'?");
  EXPECT_EQ(error_in("%a = cat([%x]) {dim = 1.5}"),
            "t:2:23: error[syntax]: attribute 'dim' of 'cat': expected an integer, got '1.5'");
  EXPECT_EQ(error_in("%a = cat([%x]) {dim = 0, dim = 0}"),
            "t:2:26: error[attribute]: attribute 'dim' is given twice");
  EXPECT_EQ(error_in("%a = view(%x)"),
            "t:2:6: error[attribute]: 'view' needs its attribute 'shape'");
  EXPECT_EQ(error_in("%a = cat([%x]) {dim = 99999999999999999999}").substr(0, 20),
            "t:2:23: error[syntax");
  EXPECT_EQ(error_in("%a = cat([%x]) {dim = 9223372036854775808}"),
            "t:2:23: error[too-large]: this integer does not fit in 64 bits");
}

TEST(ParseErrors, Sizes) {
  EXPECT_EQ(headline("func @f(%x: f32[-1]) { return }"),
            "t:1:13: error[dim-range]: f32[-1] has a negative size");
  EXPECT_EQ(error_in("%a = view(%x) {shape = [4294967296, 4294967296]}"),
            "t:2:6: error[too-large]: f32[4294967296, 4294967296] has more bytes than 64 bits can "
            "count");
  EXPECT_EQ(error_in("%a = view(%x) {shape = [9223372036854775807*s0*2]}"),
            "t:2:25: error[too-large]: this size expression overflows 64 bits or is too long");
  EXPECT_EQ(error_in("%a = view(%x) {shape = [" + std::string(100, '(') + "]}"),
            "t:2:89: error[too-large]: this size expression is nested too deeply");
  EXPECT_EQ(headline("dim s0 in [4, 3]\n"), "t:1:11: error[dim-range]: this range is empty");
  EXPECT_EQ(headline("dim s0 in [--4, 3]\n"),
            "t:1:13: error[syntax]: expected an integer, got '-'");
  EXPECT_EQ(headline("dim s0 in [-9223372036854775809, 3]\n"),
            "t:1:13: error[too-large]: this integer does not fit in 64 bits");
  EXPECT_EQ(headline("func @f(%x: f33[4]) { return }")
                .find("t:1:13: error[syntax]: no dtype named 'f33'; there are bool, u8,"),
            0u);
  EXPECT_EQ(headline("func @f(%x: f32[4, 4] layout(0, 0)) { return }"),
            "t:1:13: error[bad-value]: the layout of f32[4, 4] layout(0, 0) does not list each of "
            "its 2 dims once");
}

TEST(ParseErrors, BodiesAndFunctions) {
  std::string nested;
  for (int i = 0; i < 100; ++i) nested += "%a = fused([]) { () ";
  EXPECT_NE(error_in(nested).find("bodies are nested too deeply"), std::string::npos);
  EXPECT_EQ(error_in("%a = fused([%x]) { (%p: f32[5]) return %p } return }"),
            "t:2:6: error[type-mismatch]: the params of the body of 'a' are not its operands");
  EXPECT_EQ(error_in("%a = fused([%x]) { (%p: f32[4]) return %x } return }"),
            "t:2:40: error[undefined-value]: no value named '%x' above; did you mean '%p'?");
  EXPECT_EQ(headline("func @f() { return } func @f() { return }"),
            "t:1:27: error[redefined-value]: function '@f' is defined twice");
  EXPECT_EQ(headline(""), "t:1:1: error[syntax]: expected 'func', got the end of the text");
  EXPECT_EQ(headline("func @f(%x: f32[4]) -> f32[5] { return %x }"),
            "t:1:24: error[type-mismatch]: the function returns f32[4], not the type written here");
}

TEST(ParseErrors, Locations) {
  EXPECT_EQ(error_in("%a = relu(%x) @3 return }"),
            "t:2:15: error[syntax]: this text has no locs table");
  EXPECT_EQ(error_in("%a = relu(%x) @3 return } locs { @1 = text \"f\":1:1 \"\" }"),
            "t:2:15: error[undefined-value]: no location @3 in the locs table");
  EXPECT_EQ(error_in("return } locs { @1 = derived \"p\" [@2] }"),
            "t:2:35: error[undefined-value]: no location @2 above this one");
}

TEST(ParseErrors, AnyBytes) {
  // Every prefix, and every text with one byte replaced, is an error or a module, never a crash.
  const std::string text(kEverything);
  for (size_t i = 0; i < text.size(); ++i) {
    (void)error_of(std::string_view(text).substr(0, i));
    for (char c : {'\0', '%', '(', '}', '-', '9', '\xff', '"', '\n'}) {
      std::string mutated = text;
      mutated[i] = c;
      (void)error_of(mutated);
    }
  }
}

TEST(Text, LargeGraphsAreLinear) {
  std::string text = "func @f(%x0: f32[4]) {\n";
  for (int i = 0; i < 20000; ++i)
    text += "  %x" + std::to_string(i + 1) + " = add(%x" + std::to_string(i) + ", %x0)\n";
  text += "  return %x20000\n}\n";
  // Quadratic would be longer than the test may take.
  const Module module = must_parse(text);
  const std::string printed = print(module);
  EXPECT_EQ(print(must_parse(printed)), printed);
}

}  // namespace
}  // namespace lathe
