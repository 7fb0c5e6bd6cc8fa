// The loop interpreter: each kind of statement and expression on small kernels, and its errors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/loop/pool.h"
#include "ir/loop/text.h"
#include "ir/support/diag_codes.h"

namespace lathe::loop {
namespace {

class EvaluateTest : public ::testing::Test {
 protected:
  EvaluateTest() {
    kernel.name = "test";
    kernel.pool = std::make_shared<Pool>();
  }
  Pool& pool() { return *kernel.pool; }
  Expr number(int64_t value) { return pool().integer(value); }

  Var loop_var(const char* name, int64_t extent) {
    return kernel.add_var({name, VarKind::loop, DType::i64, 1, 0, extent - 1});
  }
  // The whole kernel is one loop over [0, extent).
  void parallel(Var var, int64_t extent, Block body) {
    kernel.body = {{For{var, number(0), number(extent), 1, LoopKind::parallel, std::move(body)}}};
  }
  template <class T>
  Memory memory(std::vector<T>& values) {
    return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
  }
  std::string error(const std::vector<Memory>& buffers) {
    Status status = evaluate(kernel, buffers);
    return status.ok() ? "" : status.error().message;
  }

  Kernel kernel;
};

TEST_F(EvaluateTest, VectorsWithATail) {
  BufferRef x = kernel.add_buffer({"x", DType::f32, 10});
  BufferRef y = kernel.add_buffer({"y", DType::f32, 10, Space::global, true});
  Var i = loop_var("i", 3);
  Expr base = pool().var(i) * 4;
  Expr mask = lt(pool().ramp(base, 1, 4), splat(number(10), 4));
  Expr value = pool().load(x, base, DType::f32, 4, mask) * 2 + 1;
  parallel(i, 3, {{Store{y, base, value, mask}}});
  std::vector<float> in(10);
  std::vector<float> out(10, -1);
  for (size_t n = 0; n < 10; ++n) in[n] = static_cast<float>(n);
  ASSERT_EQ(error({memory(in), memory(out)}), "");
  for (size_t n = 0; n < 10; ++n) EXPECT_EQ(out[n], 2 * in[n] + 1);
}

TEST_F(EvaluateTest, RegistersUnrolledLoopsAndSteps) {
  BufferRef a = kernel.add_buffer({"a", DType::f32, 2 * 6});
  BufferRef b = kernel.add_buffer({"b", DType::f32, 6 * 8});
  BufferRef c = kernel.add_buffer({"c", DType::f32, 2 * 8, Space::global, true});
  RegArray acc = kernel.add_regs({"acc", DType::f32, 4, {2, 2}});
  Var p = loop_var("p", 1);
  Var i = loop_var("i", 2);
  Var j = loop_var("j", 2);
  Var k = loop_var("k", 6);
  Var u = loop_var("u", 2);
  Expr vi = pool().var(i);
  Expr vj = pool().var(j);
  Expr row = pool().var(k) + pool().var(u);
  auto tile = [&](Stmt stmt) {
    Block inner = {{For{j, number(0), number(2), 1, LoopKind::unroll, {std::move(stmt)}}}};
    return Stmt{For{i, number(0), number(2), 1, LoopKind::unroll, std::move(inner)}};
  };
  Expr element = pool().reg(acc, {vi, vj}, DType::f32, 4);
  Expr product = fma(splat(pool().load(a, vi * 6 + row, DType::f32), 4),
                     pool().load(b, row * 8 + vj * 4, DType::f32, 4), element);
  Block step = {{For{
      u, number(0), number(2), 1, LoopKind::unroll, {tile({SetReg{acc, {vi, vj}, product}})}}}};
  parallel(p, 1,
           {{DeclareRegs{acc}},
            tile({SetReg{acc, {vi, vj}, splat(pool().number(0, DType::f32), 4)}}),
            {For{k, number(0), number(6), 2, LoopKind::serial, std::move(step)}},
            tile({Store{c, vi * 8 + vj * 4, element, {}}})});
  ASSERT_TRUE(verify(kernel, true).ok());
  std::vector<float> va(12), vb(48), vc(16);
  for (size_t n = 0; n < 12; ++n) va[n] = static_cast<float>(n % 5) - 2;
  for (size_t n = 0; n < 48; ++n) vb[n] = static_cast<float>(n % 7) - 3;
  ASSERT_EQ(error({memory(va), memory(vb), memory(vc)}), "");
  for (size_t r = 0; r < 2; ++r)
    for (size_t s = 0; s < 8; ++s) {
      float sum = 0;
      for (size_t n = 0; n < 6; ++n) sum += va[r * 6 + n] * vb[n * 8 + s];
      EXPECT_EQ(vc[r * 8 + s], sum);
    }
}

TEST_F(EvaluateTest, SoftmaxOfReduceExpressionsIsNotQuadratic) {
  constexpr int64_t kSize = 2000;
  BufferRef x = kernel.add_buffer({"x", DType::f64, kSize});
  BufferRef y = kernel.add_buffer({"y", DType::f64, kSize, Space::global, true});
  Var p = loop_var("p", 1);
  Var j = loop_var("j", kSize);
  Var r = loop_var("r", kSize);
  Var s = loop_var("s", kSize);
  auto at = [&](Var v) { return pool().load(x, pool().var(v), DType::f64); };
  Expr top = reduce(ReduceOp::max, {r}, {number(kSize)}, at(r));
  Expr sum = reduce(ReduceOp::sum, {s}, {number(kSize)}, exp(at(s) - top));
  // One statement for all elements: its reductions must not run once per element of each other.
  Expr result = reduce(ReduceOp::max, {j}, {number(kSize)}, exp(at(j) - top) / sum);
  parallel(p, 1, {{Store{y, number(0), result, {}}}});
  std::vector<double> in(kSize), out(kSize);
  double expected = 0;
  for (size_t n = 0; n < kSize; ++n) in[n] = std::sin(static_cast<double>(n));
  double high = *std::max_element(in.begin(), in.end());
  for (double v : in) expected += std::exp(v - high);
  ASSERT_EQ(error({memory(in), memory(out)}), "");
  EXPECT_DOUBLE_EQ(out[0], 1 / expected);
}

TEST_F(EvaluateTest, ReductionsFollowTheNanRule) {
  BufferRef x = kernel.add_buffer({"x", DType::f32, 6});
  BufferRef y = kernel.add_buffer({"y", DType::f32, 2, Space::global, true});
  BufferRef z = kernel.add_buffer({"z", DType::i64, 3, Space::global, true});
  Var p = loop_var("p", 1);
  Var i = loop_var("i", 2);
  Var j = loop_var("j", 3);
  std::vector<Expr> extents = {number(2), number(3)};
  Expr at = pool().load(x, pool().var(i) * 3 + pool().var(j), DType::f32);
  Expr lanes = pool().load(x, number(0), DType::f32, 4);
  parallel(p, 1,
           {{Store{y, number(0), reduce(ReduceOp::max, {i, j}, extents, at), {}}},
            {Store{y, number(1), reduce_lanes(ReduceOp::min, lanes), {}}},
            {Store{z, number(0), reduce(ReduceOp::argmax, {i, j}, extents, at), {}}},
            {Store{z, number(1), reduce(ReduceOp::argmin, {i, j}, extents, at), {}}},
            {Store{z, number(2), reduce_lanes(ReduceOp::argmax, lanes), {}}}});
  std::vector<float> in = {1, 5, -2, 5, -2, 0};
  std::vector<float> out(2);
  std::vector<int64_t> where(3);
  ASSERT_EQ(error({memory(in), memory(out), memory(where)}), "");
  EXPECT_EQ(out[0], 5);
  EXPECT_EQ(out[1], -2);
  EXPECT_EQ(where, (std::vector<int64_t>{1, 2, 1})) << "the first best element";
  in[3] = NAN;
  ASSERT_EQ(error({memory(in), memory(out), memory(where)}), "");
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_EQ(where, (std::vector<int64_t>{3, 3, 3})) << "NaN wins";
}

TEST_F(EvaluateTest, AtomicStoresCombineWithWhatIsThere) {
  BufferRef x = kernel.add_buffer({"x", DType::i32, 6});
  BufferRef y = kernel.add_buffer({"y", DType::i32, 2, Space::global, true});
  Var p = loop_var("p", 6);
  Store store{y, loop::mod(pool().var(p), number(2)), pool().load(x, pool().var(p), DType::i32)};
  store.mask = loop::lt(pool().var(p), number(5));
  store.atomic = ReduceOp::prod;
  parallel(p, 6, {{store}});
  std::vector<int32_t> in = {2, 3, 4, 5, 6, 7}, out = {10, -1};
  ASSERT_EQ(error({memory(in), memory(out)}), "");
  EXPECT_EQ(out, (std::vector<int32_t>{480, -15}));
}

TEST_F(EvaluateTest, LanesAddAsATree) {
  BufferRef x = kernel.add_buffer({"x", DType::f32, 4});
  BufferRef y = kernel.add_buffer({"y", DType::f32, 1, Space::global, true});
  Expr lanes = pool().load(x, number(0), DType::f32, 4);
  parallel(loop_var("p", 1), 1, {{Store{y, number(0), reduce_lanes(ReduceOp::sum, lanes), {}}}});
  std::vector<float> in = {1e8f, 1.0f, -1e8f, 1.0f};  // (0 + 2) + (1 + 3); in order it gives 1
  std::vector<float> out(1);
  ASSERT_EQ(error({memory(in), memory(out)}), "");
  EXPECT_EQ(out[0], 2.0f);
}

TEST_F(EvaluateTest, GathersLetsBranchesAndScratch) {
  BufferRef x = kernel.add_buffer({"x", DType::i32, 8});
  BufferRef t = kernel.add_buffer({"t", DType::i32, 4, Space::scratch});
  BufferRef y = kernel.add_buffer({"y", DType::u8, 4, Space::global, true});
  Var p = loop_var("p", 1);
  Var j = loop_var("j", 4);
  Var v = kernel.add_var({"v", VarKind::let, DType::i32, 4});
  Expr vj = pool().var(j);
  Block each = {{If{eq(mod(vj, number(2)), number(0)),
                    {{Store{y, vj, cast(pool().load(t, vj, DType::i32), DType::u8), {}}}},
                    {{Store{y, vj, pool().integer(7, DType::u8), {}}}}}}};
  parallel(p, 1,
           {{Let{v, pool().load(x, pool().ramp(number(1), 2, 4), DType::i32)}},
            {Store{t, number(0), pool().var(v, DType::i32, 4) * 100, {}}},
            {For{j, number(0), number(4), 1, LoopKind::serial, std::move(each)}}});
  std::vector<int32_t> in = {0, 1, 2, 3, 4, 5, 6, 7};
  std::vector<uint8_t> out(4);
  ASSERT_EQ(error({memory(in), memory(out)}), "");
  EXPECT_EQ(out, (std::vector<uint8_t>{100, 7, 500 & 255, 7}));
}

TEST_F(EvaluateTest, HalvesRoundOnEveryStore) {
  BufferRef x = kernel.add_buffer({"x", DType::bf16, 1});
  BufferRef y = kernel.add_buffer({"y", DType::f16, 1, Space::global, true});
  Expr sum = cast(pool().load(x, number(0), DType::bf16), DType::f32) + 0.0001;
  parallel(loop_var("p", 1), 1, {{Store{y, number(0), cast(sum, DType::f16), {}}}});
  std::vector<uint16_t> in = {f32_to_bf16(1.0f)};
  std::vector<uint16_t> out(1);
  ASSERT_EQ(error({memory(in), memory(out)}), "");
  EXPECT_EQ(f16_to_f32(out[0]), 1.0f);
}

TEST_F(EvaluateTest, PairsLieInWordsTheFirstOneLowest) {
  BufferRef x = kernel.add_buffer({"x", DType::bf16, 5});
  BufferRef y = kernel.add_buffer({"y", DType::f32, 2, Space::global, true});
  BufferRef z = kernel.add_buffer({"z", DType::i16, 4, Space::global, true});
  const Expr words = bitcast(pool().load(x, number(0), DType::bf16, 4), DType::i32);
  const Expr exists = lt(pool().ramp(number(4), 1, 2), splat(number(5), 2));
  const Expr last = bitcast(pool().load(x, number(4), DType::bf16, 2, exists), DType::i32);
  parallel(loop_var("p", 1), 1,
           {{Store{y, number(0), pair_dot(words, last, pool().number(0.5, DType::f32)), {}}},
            {Store{z, number(0), bitcast(words, DType::i16), {}}}});
  std::vector<uint16_t> in;
  for (float value : {1.0f, 2.0f, 3.0f, 4.0f, 10.0f}) in.push_back(f32_to_bf16(value));
  std::vector<float> out(2);
  std::vector<uint16_t> bits(4);
  ASSERT_EQ(error({memory(in), memory(out), memory(bits)}), "");
  EXPECT_EQ(out, (std::vector<float>{10.5f, 30.5f})) << "nothing is behind the last";
  EXPECT_TRUE(std::equal(bits.begin(), bits.end(), in.begin()));
}

TEST_F(EvaluateTest, AccessesAreChecked) {
  BufferRef x = kernel.add_buffer({"x", DType::f32, 4});
  BufferRef y = kernel.add_buffer({"y", DType::f32, 4, Space::global, true});
  Var i = loop_var("i", 4);
  Expr vi = pool().var(i);
  parallel(i, 4, {{Store{y, vi, pool().load(x, vi + 1, DType::f32), {}}}});
  std::vector<float> in(4), out(4);
  EXPECT_EQ(error({memory(in), memory(out)}),
            "kernel 'test': load of element 4 of buffer 'x', which has 4 elements");
  parallel(i, 4, {{Store{y, vi - 1, pool().load(x, vi, DType::f32), {}}}});
  EXPECT_EQ(error({memory(in), memory(out)}),
            "kernel 'test': store of element -1 of buffer 'y', which has 4 elements");
  EXPECT_EQ(error({memory(in)}), "kernel 'test': expected 2 buffers, got 1");
  in.resize(3);
  EXPECT_EQ(error({memory(in), memory(out)}),
            "kernel 'test': buffer 'x' needs 4 elements of 4 bytes, got 12 bytes");
}

TEST_F(EvaluateTest, UndefinedRegistersAreFound) {
  BufferRef y = kernel.add_buffer({"y", DType::f32, 4, Space::global, true});
  RegArray t = kernel.add_regs({"t", DType::f32, 1, {2}});
  Var i = loop_var("i", 4);
  parallel(i, 4,
           {{DeclareRegs{t}},
            {SetReg{t, {number(0)}, pool().number(1, DType::f32)}},
            {Store{y, pool().var(i), pool().reg(t, {number(1)}, DType::f32), {}}}});
  std::vector<float> out(4);
  EXPECT_EQ(error({memory(out)}),
            "kernel 'test': registers 't' are read at element 1 before they are set");
}

TEST_F(EvaluateTest, StepsAreOfABudget) {
  BufferRef y = kernel.add_buffer({"y", DType::f32, 64, Space::global, true});
  Var i = loop_var("i", 4);
  Expr zeros = splat(pool().number(0, DType::f32), 16);
  parallel(i, 4, {{Store{y, pool().var(i) * 16, zeros, {}}}});
  std::vector<float> out(64);
  StepBudget steps{10'000};
  ASSERT_TRUE(evaluate(kernel, {memory(out)}, {}, steps).ok());
  const uint64_t used = 10'000 - steps.left;
  EXPECT_GE(used, 64u);  // lanes count
  steps = {used};
  EXPECT_TRUE(evaluate(kernel, {memory(out)}, {}, steps).ok());
  steps = {used - 1};
  const Status status = evaluate(kernel, {memory(out)}, {}, steps);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "kernel 'test': it takes more than " +
                                        std::to_string(used - 1) +
                                        " steps, the most that the interpreter may run");
}

TEST_F(EvaluateTest, EmptyLoopsEnd) {
  Var i = loop_var("i", 1);
  Var j = loop_var("j", int64_t{1} << 60);
  parallel(i, 1, {{For{j, number(0), number(int64_t{1} << 60), 1, LoopKind::serial, {}}}});
  StepBudget steps{1 << 20};
  const Status status = evaluate(kernel, {}, {}, steps);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, code::kTooLarge);
}

TEST_F(EvaluateTest, EndlessAndHugeKernelsAreRefused) {
  BufferRef t = kernel.add_buffer({"t", DType::f32, int64_t{1} << 40, Space::scratch});
  Var i = loop_var("i", 4);
  parallel(i, 4, {{Store{t, pool().var(i), pool().number(1, DType::f32), {}}}});
  EXPECT_NE(error({}).find("too large for the loop interpreter"), std::string::npos);
}

TEST_F(EvaluateTest, SharedExpressionsRunOnce) {
  BufferRef y = kernel.add_buffer({"y", DType::f64, 1, Space::global, true});
  Var i = loop_var("i", 1);
  Expr e = cast(pool().var(i), DType::f64) + 1;
  for (int n = 0; n < 60; ++n) e = sqrt(e * e + e * e);  // 2^60 paths
  parallel(i, 1, {{Store{y, number(0), e, {}}}});
  std::vector<double> out(1);
  ASSERT_EQ(error({memory(out)}), "");
  EXPECT_NEAR(out[0] / std::pow(2.0, 30), 1.0, 1e-12);
}

}  // namespace
}  // namespace lathe::loop
