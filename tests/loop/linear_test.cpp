// Linear forms, intervals and index simplification; the last also on random nests of views, every
// form evaluated over the whole range of its variables.
#include "ir/loop/linear.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ir/loop/scalar.h"
#include "ir/loop/text.h"

namespace lathe::loop {
namespace {

// The value of a scalar i64 expression for given variables.
int64_t value_of(Expr e, const std::map<uint32_t, int64_t>& vars) {
  std::map<const ExprNode*, int64_t> values;
  for_each(e, [&](Expr n) {
    int64_t value = 0;
    if (const IntConst* c = as_int(n)) value = c->value;
    if (const auto* read = std::get_if<VarRead>(&n->kind)) value = vars.at(read->var.id);
    if (const auto* u = std::get_if<Unary>(&n->kind))
      value = apply(u->op, u->x->dtype, int_scalar(values[u->x.node()])).i;
    if (const auto* b = std::get_if<Binary>(&n->kind))
      value = apply(b->op, b->a->dtype, int_scalar(values[b->a.node()]),
                    int_scalar(values[b->b.node()]))
                  .i;
    if (const auto* s = std::get_if<Select>(&n->kind))
      value = values[s->condition.node()] ? values[s->if_true.node()] : values[s->if_false.node()];
    values[n.node()] = value;
  });
  return values[e.node()];
}

class LinearTest : public ::testing::Test {
 protected:
  LinearTest() { kernel.pool = std::make_shared<Pool>(); }

  // A loop variable in [0, extent).
  Expr loop_var(int64_t extent) {
    Var var = kernel.add_var(
        {"v" + std::to_string(kernel.vars.size()), VarKind::loop, DType::i64, 1, 0, extent - 1});
    return kernel.pool->var(var);
  }
  Expr number(int64_t value) { return kernel.pool->integer(value); }
  Expr div(Expr e, int64_t by) { return floor_div(e, number(by)); }
  Expr rem(Expr e, int64_t by) { return mod(e, number(by)); }
  Expr simple(Expr e) { return simplify_index(e, kernel); }

  // Both forms agree for every value of the variables.
  void expect_same(Expr before, Expr after) {
    std::map<uint32_t, int64_t> vars;
    for (uint32_t i = 0; i < kernel.vars.size(); ++i) vars[i] = kernel.vars[i].min;
    for (bool is_done = false; !is_done;) {
      ASSERT_EQ(value_of(before, vars), value_of(after, vars));
      is_done = true;
      for (uint32_t i = 0; i < kernel.vars.size() && is_done; ++i) {
        is_done = vars[i] == kernel.vars[i].max;
        vars[i] = is_done ? kernel.vars[i].min : vars[i] + 1;
      }
    }
  }

  // The extents of the variables, for messages.
  std::string sizes_text() const {
    std::string text = " with";
    for (const VarInfo& var : kernel.vars)
      text += " " + var.name + " < " + std::to_string(var.max + 1);
    return text;
  }

  Kernel kernel;
};

TEST_F(LinearTest, MergesTerms) {
  Expr i = loop_var(8);
  Expr j = loop_var(4);
  Linear form = linear((i * 4 + j) * 2 - i + 7);
  EXPECT_EQ(form.constant, 7);
  EXPECT_EQ(form.coefficient({0}), 7);
  EXPECT_EQ(form.coefficient({1}), 2);
  EXPECT_EQ(to_expr(*kernel.pool, form), i * 7 + j * 2 + 7);
  EXPECT_TRUE(linear(i - i + 3).terms.empty());
}

TEST_F(LinearTest, SharedSumsStayCheap) {
  Expr e = loop_var(8);
  for (int n = 0; n < 60; ++n) e = binary(BinaryOp::add, e, e);
  EXPECT_EQ(linear(e).coefficient({0}), int64_t{1} << 60);
}

TEST_F(LinearTest, NonLinearPartsAreAtoms) {
  Expr i = loop_var(8);
  Expr j = loop_var(8);
  Linear form = linear(i * j * 3 + div(j, 3) + i);
  ASSERT_EQ(form.terms.size(), 3u);
  EXPECT_EQ(form.terms[0].first, i);
  EXPECT_TRUE(form.depends_on({1}));
  EXPECT_EQ(form.coefficient({1}), 0);
}

TEST_F(LinearTest, Intervals) {
  Expr i = loop_var(8);
  Expr j = loop_var(4);
  auto expect = [&](Expr e, int64_t low, int64_t high) {
    Interval range = interval(e, kernel);
    EXPECT_EQ(range.min, low);
    EXPECT_EQ(range.max, high);
  };
  expect(i * 4 + j, 0, 31);
  expect(i - i + j, 0, 3);
  expect(i * -2 + 1, -13, 1);
  expect(rem(i, 3), 0, 2);
  expect(rem(i, 100), 0, 7);
  expect(div(i - 3, 2), -2, 2);
  expect(min(i, j), 0, 3);
  expect(max(i, j + 2), 2, 7);
  expect(select(lt(i, j), i, j - 5), -5, 7);
  expect(lt(i, number(8)), 1, 1);
  expect(select(lt(i, number(8)), j, number(99)), 0, 3);
  // Of what has one value: what is read from a table of bits.
  Expr two = kernel.pool->var(kernel.add_var({"two", VarKind::loop, DType::i64, 1, 2, 2}));
  const Expr shifted = binary(BinaryOp::shift_right, number(13), two);
  expect(binary(BinaryOp::bit_and, shifted, number(1)), 1, 1);
  expect(rem(two - 5, 4), 1, 1);
  expect(kernel.pool->ramp(i, 2, 4), 0, 13);
  Expr dim = kernel.pool->var(kernel.add_var({"n", VarKind::dim}));
  expect(dim * dim, 0, INT64_MAX);
  Expr let = kernel.pool->var(kernel.add_var({"t", VarKind::let}));
  expect(let, INT64_MIN, INT64_MAX);
}

TEST_F(LinearTest, SplitAndMergedDimsBecomeLinear) {
  Expr i = loop_var(6);
  Expr j = loop_var(8);
  Expr flat = i * 8 + j;
  EXPECT_EQ(simple(div(flat, 8)), i);
  EXPECT_EQ(simple(rem(flat, 8)), j);
  EXPECT_EQ(simple(rem(flat, 16)), simple(rem(i, 2) * 8 + j));
  EXPECT_EQ(simple(div(flat, 4)), simple(i * 2 + div(j, 4)));
  EXPECT_EQ(simple(div(flat, 48)), number(0));
  EXPECT_EQ(simple(rem(flat + 48, 48)), flat);
  EXPECT_EQ(simple(div(i * 6, 9)), simple(div(i * 2, 3)));
  EXPECT_EQ(simple(rem(i * 6, 9)), simple(rem(i * 2, 3) * 3));
}

TEST_F(LinearTest, NestedQuotientsMerge) {
  Expr i = loop_var(1000);
  EXPECT_EQ(simple(div(div(i, 4), 5)), div(i, 20));
  EXPECT_EQ(simple(rem(rem(i, 20), 5)), rem(i, 5));
  EXPECT_EQ(simple(div(rem(i, 20), 5)), rem(div(i, 5), 4));
  EXPECT_EQ(simple(i - div(i, 7) * 7), rem(i, 7));
  EXPECT_EQ(simple(div(i, 7) * 7 + rem(i, 7)), i);
  EXPECT_EQ(simple(div(i, 20) * 20 + rem(div(i, 5), 4) * 5 + rem(i, 5)), i);
  EXPECT_EQ(simple(rem(div(i, 5), 4) * 5 + rem(i, 5)), rem(i, 20));
  EXPECT_EQ(simple(rem(i, 2000)), i);
}

TEST_F(LinearTest, ComparisonsThatRangesDecideFold) {
  Expr i = loop_var(6);
  Expr j = loop_var(8);
  EXPECT_EQ(simple(lt(i * 8 + j, number(48))), kernel.pool->boolean(true));
  EXPECT_EQ(simple(le(number(0), i - 6)), kernel.pool->boolean(false));
  EXPECT_EQ(simple(max(i, number(0))), i);
  EXPECT_EQ(simple(select(lt(j, number(9)), i, j)), i);
  EXPECT_EQ(simple(lt(i, j)), lt(i, j));
}

TEST_F(LinearTest, SubstituteFolds) {
  Expr i = loop_var(6);
  EXPECT_EQ(substitute(i * 8 + 1, {0}, number(2)), number(17));
  EXPECT_TRUE(depends_on(i * 8 + 1, {0}));
  EXPECT_FALSE(depends_on(i * 8 + 1, {1}));
}

// A chain of reshapes of one block of elements: split and merge the dims again and again, always
// by a factorisation of the same number of elements. It must end linear when it ends in the shape
// it began with.
TEST_F(LinearTest, RandomReshapeChains) {
  std::mt19937 random(7);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    kernel.vars.clear();
    auto shape_of = [&](int64_t elements) {
      std::vector<int64_t> shape;
      for (int64_t rest = elements; rest > 1;) {
        std::vector<int64_t> divisors;
        for (int64_t d = 2; d <= rest; ++d)
          if (rest % d == 0) divisors.push_back(d);
        shape.push_back(divisors[static_cast<size_t>(pick(static_cast<int>(divisors.size())))]);
        rest /= shape.back();
      }
      return shape;
    };
    int64_t sizes[] = {24, 60, 64, 96, 120};
    std::vector<int64_t> first = shape_of(sizes[pick(5)]);
    std::vector<Expr> index;
    for (int64_t extent : first) index.push_back(loop_var(extent));
    std::vector<int64_t> shape = first;
    auto flatten = [&] {
      Expr flat = number(0);
      for (size_t d = 0; d < shape.size(); ++d) flat = flat * number(shape[d]) + index[d];
      return flat;
    };
    Expr original = flatten();
    int64_t elements = 1;
    for (int64_t extent : shape) elements *= extent;
    auto reshape = [&](const std::vector<int64_t>& to) {
      Expr flat = flatten();
      index.assign(to.size(), Expr());
      for (size_t d = to.size(); d-- > 0;) {
        index[d] = d == 0 ? flat : rem(flat, to[d]);
        flat = div(flat, to[d]);
      }
      shape = to;
    };
    for (int step = 0; step < 4; ++step) reshape(shape_of(elements));
    expect_same(original, simple(flatten()));
    reshape(first);
    for (size_t d = 0; d < first.size(); ++d) {
      Expr simpler = simple(index[d]);
      expect_same(index[d], simpler);
      EXPECT_EQ(simpler, kernel.pool->var({static_cast<uint32_t>(d)}))
          << print(simpler, kernel) << " from " << print(index[d], kernel) << sizes_text();
    }
    EXPECT_EQ(simple(flatten()), simple(original))
        << print(simple(flatten()), kernel) << sizes_text();
  }
}

// Arbitrary nests of integer arithmetic: only the value counts.
TEST_F(LinearTest, RandomExpressionsKeepTheirValue) {
  std::mt19937 random(11);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 4000; ++round) {
    kernel.vars.clear();
    std::vector<Expr> values;
    for (int n = 0; n < 3; ++n) values.push_back(loop_var(1 + pick(7)));
    for (int n = 0; n < 3 + pick(10); ++n) {
      auto any = [&] { return values[static_cast<size_t>(pick(static_cast<int>(values.size())))]; };
      Expr a = any();
      Expr b = any();
      Expr made[] = {a * (pick(13) - 3) + b,
                     a - b,
                     div(a, 1 + pick(12)),
                     rem(a, 1 + pick(12)),
                     a + pick(20) - 5,
                     min(a, b),
                     div(a * pick(9) + b, 1 + pick(12)),
                     select(lt(a, b), a, b + 1)};
      values.push_back(made[pick(8)]);
    }
    Expr before = values.back();
    Expr after = simple(before);
    expect_same(before, after);
    EXPECT_EQ(simple(after), after) << "simplifying twice changes nothing, round " << round;
    std::map<uint32_t, int64_t> zeros = {{0, 0}, {1, 0}, {2, 0}};
    Interval range = interval(before, kernel);
    EXPECT_LE(range.min, value_of(before, zeros));
    EXPECT_GE(range.max, value_of(before, zeros));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace lathe::loop
