// What op rows use to address elements: broadcasting, reductions, flattening.
#include "ir/op/element.h"

#include <gtest/gtest.h>

#include "ir/loop/linear.h"
#include "ir/loop/text.h"

namespace lathe {
namespace {

// Every operand is buffer 0, indexed by the sum of what it was asked for.
class TestContext : public ElementContext {
 public:
  TestContext() { kernel.pool = std::make_shared<loop::Pool>(); }
  loop::Expr operand(const Node&, int, std::span<const loop::Expr> index) override {
    asked.assign(index.begin(), index.end());
    loop::Expr position = integer(0);
    for (loop::Expr i : index) position = position + i;
    return pool().load({0}, position, DType::f32);
  }
  loop::Var fresh_var(const Dim& extent) override { return kernel.add_loop_var("r", extent); }
  loop::Pool& pool() override { return *kernel.pool; }
  loop::Expr simplify(loop::Expr index) override { return loop::simplify_index(index, kernel); }
  loop::Expr var(int64_t extent) { return pool().var(fresh_var(extent)); }

  loop::Kernel kernel;
  std::vector<loop::Expr> asked;
};

class ElementTest : public ::testing::Test {
 protected:
  TestContext context;
  Node node;
};

TEST_F(ElementTest, OperandsBroadcastFromTheRight) {
  Node x;
  x.types = {{DType::f32, {1, 3}}};
  node.operands = {{&x, 0}};
  std::vector<loop::Expr> index = {context.var(5), context.var(4), context.var(3)};
  context.broadcast_operand(node, 0, index);
  EXPECT_EQ(context.asked, (std::vector<loop::Expr>{context.integer(0), index[2]}));
  x.types = {{DType::f32, {}}};
  context.broadcast_operand(node, 0, index);
  EXPECT_TRUE(context.asked.empty());
}

TEST_F(ElementTest, ReductionsLeaveOutDimsOfOne) {
  auto body = [&](std::span<const loop::Expr> r) { return context.operand(node, 0, r); };
  loop::Expr sum = context.reduce(loop::ReduceOp::sum, {4, 1, 3}, body);
  const auto* reduce = std::get_if<loop::Reduce>(&sum->kind);
  ASSERT_NE(reduce, nullptr);
  EXPECT_EQ(reduce->vars.size(), 2u);
  EXPECT_EQ(context.reduce(loop::ReduceOp::sum, {1, 1}, body),
            context.pool().load({0}, context.integer(0), DType::f32));
  EXPECT_EQ(context.reduce(loop::ReduceOp::prod, {4, 0}, body),
            context.pool().number(1, DType::f32))
      << "nothing to combine";
}

TEST_F(ElementTest, FlattenAndUnflattenAreInverse) {
  const Shape shape = {5, 4, 3};
  std::vector<loop::Expr> index = {context.var(5), context.var(4), context.var(3)};
  loop::Expr flat = context.flatten(index, shape);
  EXPECT_EQ(flat, index[0] * 12 + index[1] * 3 + index[2]);
  EXPECT_EQ(context.unflatten(flat, shape), index);
  EXPECT_EQ(context.flatten({}, {}), context.integer(0));
  EXPECT_TRUE(context.unflatten(context.integer(0), {}).empty());
}

TEST(Element, HalvesComputeInSinglePrecision) {
  EXPECT_EQ(compute_dtype(DType::bf16), DType::f32);
  EXPECT_EQ(compute_dtype(DType::f16), DType::f32);
  EXPECT_EQ(compute_dtype(DType::f64), DType::f64);
  EXPECT_EQ(compute_dtype(DType::u8), DType::u8);
}

}  // namespace
}  // namespace lathe
