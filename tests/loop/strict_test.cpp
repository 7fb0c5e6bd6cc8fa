// make_strict leaves nothing that a target may decide.
#include "ir/loop/strict.h"

#include <gtest/gtest.h>

#include "ir/loop/pool.h"
#include "ir/loop/text.h"

namespace lathe::loop {
namespace {

// store z[i] = build(x[i]), made strict, as text.
std::string strict_text(const std::function<Expr(Expr)>& build) {
  Kernel kernel;
  kernel.name = "k";
  kernel.pool = std::make_shared<Pool>();
  Pool& pool = *kernel.pool;
  BufferRef x = kernel.add_buffer({"x", DType::f32, 64});
  BufferRef z = kernel.add_buffer({"z", DType::f32, 64, Space::global, true});
  Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 63});
  Expr at = pool.var(i);
  kernel.body = {{For{i,
                      pool.integer(0),
                      pool.integer(64),
                      1,
                      LoopKind::parallel,
                      {{Store{z, at, build(pool.load(x, at, DType::f32)), {}}}}}}};
  make_strict(kernel);
  return print(kernel);
}

TEST(MakeStrict, RoundsProductsOfFma) {
  const std::string text = strict_text([](Expr x) { return fma(x, x, x + 1.0); });
  EXPECT_EQ(text.find("fma"), std::string::npos) << text;
  EXPECT_NE(text.find("%x[%i] * load %x[%i]"), std::string::npos) << text;
}

TEST(MakeStrict, ExpandsFunctionsWithoutFma) {
  const std::string text = strict_text([](Expr x) { return exp(x); });
  EXPECT_EQ(text.find("exp("), std::string::npos) << text;
  EXPECT_EQ(text.find("fma"), std::string::npos) << text;
}

TEST(MakeStrict, GivesZeroOfMinAndMaxOneSign) {
  const std::string text = strict_text([](Expr x) { return max(x, constant_like(x, -1)); });
  EXPECT_NE(text.find("max(load %x[%i], -1.0) + 0.0"), std::string::npos) << text;
}

TEST(MakeStrict, LeavesIntegersAlone) {
  const std::string text = strict_text(
      [](Expr x) { return cast(max(cast(x, DType::i32), cast(x, DType::i32) + 1.0), DType::f32); });
  EXPECT_EQ(text.find("+ 0.0"), std::string::npos) << text;
}

}  // namespace
}  // namespace lathe::loop
