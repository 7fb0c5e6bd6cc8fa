// Symbolic sizes in index expressions: what simplification proves of them, and their lifting.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ir/loop/lift_sizes.h"
#include "ir/loop/linear.h"
#include "ir/loop/pool.h"
#include "ir/loop/text.h"

namespace lathe::loop {
namespace {

using Values = std::map<std::string, int64_t>;

class SizesTest : public testing::Test {
 protected:
  SizesTest() {
    kernel.pool = std::make_shared<Pool>();
    kernel.symbols = {{"a", {1, 64}}, {"b", {1, 64}}, {"c", {2, 64}}};
  }
  Expr size(const Dim& dim) { return kernel.pool->size(dim); }
  Expr loop_var(const Dim& extent) {
    VarInfo info{"i"};
    const DimRange range = extent.bounds(kernel.symbols);
    info.max = range.max.value_or(INT64_MAX) - 1;
    if (!extent.is_const()) info.extent = extent;
    extents.push_back(extent);
    vars.push_back(kernel.add_var(info));
    return kernel.pool->var(vars.back());
  }
  Expr simple(Expr e) { return simplify_index(e, kernel); }
  std::string text(Expr e) { return print(e, kernel); }

  // The number that the expression is, with sizes and variables given.
  int64_t value(Expr e, const Values& sizes, const std::vector<int64_t>& at) {
    const Expr result = rewrite(e, [&](Expr part) {
      if (const auto* s = std::get_if<Size>(&part->kind))
        return kernel.pool->integer(*s->value.evaluate(sizes));
      if (const auto* read = std::get_if<VarRead>(&part->kind))
        return kernel.pool->integer(at[read->var.id]);
      return Expr();
    });
    const IntConst* constant = as_int(result);
    EXPECT_NE(constant, nullptr) << text(result);
    return constant ? constant->value : 0;
  }

  Kernel kernel;
  std::vector<Var> vars;
  std::vector<Dim> extents;
  Dim a = Dim::symbol("a"), b = Dim::symbol("b"), c = Dim::symbol("c");
};

TEST_F(SizesTest, ArithmeticOfSizesIsThatOfDims) {
  EXPECT_EQ(size(a) * 2 + size(b) * 3, size(Dim(2) * a + Dim(3) * b));
  EXPECT_EQ(floor_div(size(Dim(4) * a), kernel.pool->integer(4)), size(a));
  EXPECT_EQ(size(a) - size(a), kernel.pool->integer(0));
  EXPECT_EQ(lt(size(a), size(a + Dim(1))), kernel.pool->boolean(true));
  const Expr i = loop_var(8);
  EXPECT_EQ((i * size(a)) * size(b), i * size(a * b));
}

TEST_F(SizesTest, AnIndexThatIsFlattenedComesApartAgain) {
  const Expr i = loop_var(a), j = loop_var(b), k = loop_var(c);
  const Expr flat = (i * size(b) + j) * size(c) + k;
  EXPECT_EQ(simple(floor_div(flat, size(b * c))), i);
  EXPECT_EQ(simple(mod(floor_div(flat, size(c)), size(b))), j);
  EXPECT_EQ(simple(mod(flat, size(c))), k);
  EXPECT_EQ(simple(floor_div(flat, size(c))), simple(i * size(b) + j));
  EXPECT_EQ(simple(floor_div(flat, size(a * b * c))), kernel.pool->integer(0));
}

TEST_F(SizesTest, StaticInnerDimsOfSymbolicOnesComeApart) {
  const Expr i = loop_var(a), j = loop_var(b), k = loop_var(768);
  const Expr flat = (i * size(b) + j) * 768 + k;
  EXPECT_EQ(simple(floor_div(flat, kernel.pool->integer(768))), simple(i * size(b) + j));
  EXPECT_EQ(simple(mod(flat, kernel.pool->integer(64))), simple(mod(k, kernel.pool->integer(64))));
  EXPECT_EQ(simple(floor_div(flat, size(Dim(768) * b))), i);
}

TEST_F(SizesTest, PartsOfAPositionJoinAgain) {
  const Expr p = loop_var(a * b * c);
  const Expr whole = floor_div(p, size(b * c)) * size(b * c) +
                     mod(floor_div(p, size(c)), size(b)) * size(c) + mod(p, size(c));
  EXPECT_EQ(simple(whole), p);
}

TEST_F(SizesTest, ComparisonsAreDecidedByExtents) {
  const Expr i = loop_var(a);
  EXPECT_EQ(simple(lt(i, size(a))), kernel.pool->boolean(true));
  EXPECT_EQ(simple(min(i, size(a) - 1)), i);
  EXPECT_EQ(simple(le(size(a), i)), kernel.pool->boolean(false));
  const Expr open = lt(i, size(b));
  EXPECT_EQ(simple(open), open);
}

// P2: equal everywhere in its box, whatever the sizes.
TEST_F(SizesTest, WhatIsSimplifiedIsEqualEverywhere) {
  std::mt19937 random(7);
  const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
  const std::vector<Dim> sizes = {
      a, b, c, a * b, Dim(3) * c, a + Dim(1), Dim::floor_div(c, 2), Dim(4), Dim(7), Dim::max(a, b)};
  std::vector<Expr> leaves = {loop_var(a), loop_var(b), loop_var(a * c), loop_var(5), loop_var(c)};
  for (const Dim& dim : sizes) leaves.push_back(size(dim));
  for (int round = 0; round < 600; ++round) {
    std::vector<Expr> all = leaves;
    for (int step = 0; step < 6; ++step) {
      const Expr x = all[pick(all.size())], y = all[pick(all.size())],
                 by = size(sizes[pick(sizes.size())]);
      const Expr made[] = {
          x + y,      x - y,     x * by,    floor_div(x, by),          mod(x, by),
          x * by + y, min(x, y), max(x, y), floor_div(x * by + y, by), mod(x * by + y, by)};
      all.push_back(made[pick(std::size(made))]);
    }
    const Expr before = all.back(), after = simple(before);
    for (int sample = 0; sample < 12; ++sample) {
      const int64_t most = sample % 3 == 0 ? 2 : 9;
      Values values;
      for (const auto& [name, range] : kernel.symbols)
        values[name] = *range.min + static_cast<int64_t>(pick(static_cast<size_t>(most)));
      std::vector<int64_t> at;
      for (const Dim& extent : extents) {
        const int64_t count = *extent.evaluate(values);
        at.push_back(sample % 4 == 0 ? count - 1
                                     : static_cast<int64_t>(pick(static_cast<size_t>(count))));
      }
      ASSERT_EQ(value(before, values, at), value(after, values, at))
          << text(before) << "\n became " << text(after);
    }
  }
}

Kernel parsed(const std::string& source) {
  LocTable locs;
  Result<Kernel> result = parse_kernel(source, locs);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? std::move(*result) : Kernel{};
}

std::string with_symbol(const std::string& name) {
  std::string text = R"(kernel @double(%x: f32[8*S], %y: f32[8*S] out) {
  size S in [1, 64]
  parallel %i in 0..size(S) {
    store %y[%i*8] = load f32x8 %x[%i*8] * 2.0
  }
}
)";
  for (size_t at = 0; (at = text.find('S', at)) != std::string::npos;)
    text.replace(at, 1, name), at += name.size();
  return text;
}

TEST_F(SizesTest, TextWithSizesIsReadBack) {
  const std::string text = with_symbol("s0");
  EXPECT_EQ(print(parsed(text)), text);
}

TEST_F(SizesTest, LiftedSizesAreParametersInTheirOrder) {
  Kernel lifted = parsed(with_symbol("s0"));
  const std::vector<Dim> sizes = lift_sizes(lifted);
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0].str(), "s0");
  EXPECT_EQ(sizes[1].str(), "8*s0");
  EXPECT_TRUE(verify(lifted, /*is_scheduled=*/true).ok());
  EXPECT_EQ(print(lifted), R"(kernel @double(%x: f32[n1], %y: f32[n1] out) {
  dim %n0 in [1, 64]
  dim %n1 in [8, 512] multiple 8
  parallel %i in 0..%n0 {
    store %y[%i*8] = load f32x8 %x[%i*8] * 2.0
  }
}
)");
  EXPECT_EQ(print(parsed(print(lifted))), print(lifted));
}

// P7: kernels of other symbols are one.
TEST_F(SizesTest, KernelsThatDifferInSymbolsAloneAreEqual) {
  Kernel one = parsed(with_symbol("s0")), other = parsed(with_symbol("batch"));
  lift_sizes(one);
  lift_sizes(other);
  EXPECT_EQ(canonical_form(one), canonical_form(other));
  EXPECT_EQ(print(one), print(other));
}

TEST_F(SizesTest, KernelsOfOtherRangesDiffer) {
  Kernel one = parsed(with_symbol("s0")), other = parsed(with_symbol("s0"));
  other.symbols["s0"].max = 65;
  lift_sizes(one);
  lift_sizes(other);
  EXPECT_NE(canonical_form(one), canonical_form(other));
}

TEST_F(SizesTest, AKernelRunsAtTheSizesItIsGiven) {
  Kernel lifted = parsed(with_symbol("s0"));
  lift_sizes(lifted);
  std::vector<float> x(16, 3), y(16, 0);
  const auto memory = [&](std::vector<float>& data) {
    return Memory{reinterpret_cast<std::byte*>(data.data()), data.size() * sizeof(float)};
  };
  const int64_t sizes[] = {2, 16};
  ASSERT_TRUE(evaluate(lifted, {memory(x), memory(y)}, sizes).ok());
  EXPECT_EQ(y, std::vector<float>(16, 6));
  const int64_t one[] = {1, 8};
  std::vector<float> z(16, 0);
  ASSERT_TRUE(evaluate(at_sizes(lifted, one), {memory(x), memory(z)}).ok());
  EXPECT_EQ(z[7], 6);
  EXPECT_EQ(z[8], 0);
}

TEST_F(SizesTest, SizesThatADimForbidsAreRefused) {
  Kernel lifted = parsed(with_symbol("s0"));
  lift_sizes(lifted);
  std::vector<float> x(16, 3);
  const Memory memory{reinterpret_cast<std::byte*>(x.data()), x.size() * sizeof(float)};
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{2}, {0, 16}, {65, 16}, {2, 15}, {2, 24}})
    EXPECT_FALSE(evaluate(lifted, {memory, memory}, sizes).ok());
}

TEST_F(SizesTest, ASymbolThatTheKernelLacksIsRefused) {
  LocTable locs;
  const auto result =
      parse_kernel("kernel @k(%y: f32[8] out) {\n  parallel %i in 0..size(s9) {\n  }\n}\n", locs);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("the kernel has no 's9'"), std::string::npos);
}

// Each is near the limit of a Dim, so that the sum of any two is beyond it.
TEST_F(SizesTest, SizesWhoseSumsAreTooLargeStayApart) {
  const auto large = [&](const char* symbol) {
    Dim sum = 0;
    for (int64_t i = 3; !sum.is_too_large() && i < 170; ++i)
      sum = sum + Dim::floor_div(Dim::symbol(symbol), Dim(i));
    EXPECT_FALSE(sum.is_too_large());
    return sum;
  };
  const Dim a = large("a"), b = large("b"), c = large("c");
  ASSERT_TRUE((a + b).is_too_large());
  const Expr all = size(a) + size(b) + size(c);
  const Values sizes = {{"a", 60}, {"b", 7}, {"c", 33}};
  EXPECT_EQ(value(all, sizes, {}), *a.evaluate(sizes) + *b.evaluate(sizes) + *c.evaluate(sizes));
  EXPECT_EQ(value(loop_var(4) + size(a) + size(b), sizes, {2}),
            2 + *a.evaluate(sizes) + *b.evaluate(sizes));
}

}  // namespace
}  // namespace lathe::loop
