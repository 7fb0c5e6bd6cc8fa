// The verifier: one wrong kernel per invariant, built by hand where the parser would refuse first.
#include <gtest/gtest.h>

#include "ir/loop/pool.h"
#include "ir/loop/text.h"

namespace lathe::loop {
namespace {

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    kernel.name = "k";
    kernel.pool = std::make_shared<Pool>();
    x = kernel.add_buffer({"x", DType::f32, 64});
    y = kernel.add_buffer({"y", DType::f32, 64, Space::global, true});
    i = loop_var("i", 64);
  }
  Pool& pool() { return *kernel.pool; }
  Expr number(int64_t value) { return pool().integer(value); }
  Expr real(double value) { return pool().number(value, DType::f32); }
  Var loop_var(const char* name, int64_t extent) {
    return kernel.add_var({name, VarKind::loop, DType::i64, 1, 0, extent - 1});
  }
  For loop(Var var, int64_t extent, LoopKind kind, Block body) {
    return For{var, number(0), number(extent), 1, kind, std::move(body)};
  }
  // The message for a kernel whose parallel loop has this body, without its name.
  std::string error(Block body, bool is_scheduled = true) {
    kernel.body = {{loop(i, 64, LoopKind::parallel, std::move(body))}};
    return message(is_scheduled);
  }
  std::string message(bool is_scheduled) {
    Status status = verify(kernel, is_scheduled);
    if (status.ok()) return "";
    std::string text = status.error().message;
    return text.substr(text.find(": ") + 2);
  }
  std::string error_of(Expr value) { return error({{Store{y, number(0), value, {}}}}); }

  Kernel kernel;
  BufferRef x, y;
  Var i;
};

TEST_F(VerifyTest, AcceptsAScheduledKernel) {
  EXPECT_EQ(error({{Store{y, pool().var(i), pool().load(x, pool().var(i), DType::f32), {}}}}), "");
}

// The message for a kernel in text, with buffers %x (f32, read), %y (f32, written) and what
// `buffers` adds, whose parallel loop over %i has this body.
std::string error_in_text(const std::string& body, const std::string& buffers = "") {
  LocTable locs;
  Result<Kernel> kernel = parse_kernel("kernel @k(%x: f32[64], %y: f32[64] out" + buffers +
                                           ") { parallel %i in 0..4 { " + body + " } }",
                                       locs);
  if (kernel.ok()) return "";
  const std::string text = kernel.error().message;
  return text.substr(text.find(": ") + 2);
}

TEST_F(VerifyTest, AtomicStores) {
  const std::string no_word = " is no scalar of 32 or 64 bits in a buffer of the caller";
  EXPECT_EQ(error_in_text("store atomic sum %y[%i] = 1.0"), "");
  EXPECT_EQ(error_in_text("store atomic min %y[%i] mask(%i < 2) = load %x[%i]"), "");
  EXPECT_EQ(error_in_text("store atomic any %y[%i] = 1.0"),
            "an atomic store combines by sum, prod, max or min");
  EXPECT_EQ(error_in_text("store atomic sum %y[%i] = splat(1.0, 4)"),
            "an atomic store to 'y'" + no_word);
  EXPECT_EQ(error_in_text("store atomic sum %h[%i] = 1.0", ", %h: f16[64] out"),
            "an atomic store to 'h'" + no_word);
  EXPECT_EQ(error_in_text("store atomic sum %t[%i] = 1.0", ", %t: f32[64] scratch"),
            "an atomic store to 't'" + no_word);
}

TEST_F(VerifyTest, ThreadLoops) {
  EXPECT_EQ(error_in_text("let %a = %i*2 thread %t in 0..8 { store %y[%a + %t] = 1.0 }"), "");
  const std::string place =
      "thread loop '%t' does not stand last in a parallel loop, behind lets alone";
  EXPECT_EQ(error_in_text("thread %t in 0..8 { store %y[0] = 1.0 } let %a = 1"), place);
  EXPECT_EQ(error_in_text("for %j in 0..2 { thread %t in 0..8 { store %y[0] = 1.0 } }"), place);
  EXPECT_EQ(error_in_text("store %y[0] = 1.0 thread %t in 0..8 { store %y[1] = 1.0 }"),
            "a group has lets alone before its threads");
  EXPECT_EQ(error_in_text("thread %t in 0..8 { thread %u in 0..8 { store %y[0] = 1.0 } }"),
            "a thread loop stands in another");
  for (const char* range : {"1..8", "0..%i", "0..0", "0..1025", "0..8 step 2"})
    EXPECT_EQ(error_in_text(std::string("thread %t in ") + range + " { store %y[0] = 1.0 }"),
              "threads are counted from 0 to a constant up to 1024");
}

TEST_F(VerifyTest, BarriersStandWhereAllThreadsGo) {
  const std::string parted = "a barrier stands where threads may part";
  EXPECT_EQ(error_in_text("barrier"), "a barrier stands outside of a thread loop");
  EXPECT_EQ(error_in_text("thread %t in 0..8 { for %k in 0..%i { if %k < %i { barrier } } }"), "");
  EXPECT_EQ(error_in_text("thread %t in 0..8 { let %a = %i + 1 for %k in 0..%a { barrier } }"), "");
  EXPECT_EQ(error_in_text("thread %t in 0..8 { if %t < 4 { barrier } }"), parted);
  EXPECT_EQ(error_in_text("thread %t in 0..8 { for %k in 0..%t { barrier } }"), parted);
  EXPECT_EQ(error_in_text("thread %t in 0..8 { for %k in 0..%t { for %j in 0..2 { barrier } } }"),
            parted);
  EXPECT_EQ(error_in_text("thread %t in 0..8 { let %a = %t*2 for %k in 0..%a { barrier } }"),
            parted);
  EXPECT_EQ(error_in_text("thread %t in 0..8 { if load %x[0] < 1.0 { barrier } }"), parted);
  EXPECT_EQ(error_in_text("thread %t in 0..8 { for %k in 0..%t { let %a = 1 if %a < 2 { barrier } "
                          "} }"),
            parted);
}

TEST_F(VerifyTest, SharedBuffersAreOfThreads) {
  EXPECT_EQ(error_in_text("store %s[0] = 1.0", ", %s: f32[4] shared"),
            "buffer 's' is shared, and there are no threads");
  EXPECT_EQ(error_in_text("thread %t in 0..8 { store %s[0] = 1.0 }", ", %s: f32[4] scratch"),
            "buffer 's' is no one thread's: threads have shared ones alone");
}

TEST_F(VerifyTest, MatrixTiles) {
  const std::string tiles =
      "tiles %a: left(bf16, 16, 8, 16) tiles %b: right(bf16, 16, 8, 16)[2] tiles %c: sum(f32, 16, "
      "8, 16) ";
  const std::string half = ", %h: bf16[512]";
  EXPECT_EQ(error_in_text(tiles + "load_tile %a, %h[%i] stride 16 load_tile %b[1], %h[0] stride 8 "
                                  "transposed %c = 0.0 mma %c, %a, %b[1] store_tile %y[0] stride "
                                  "8, %c",
                          half),
            "");
  EXPECT_EQ(error_in_text(tiles + "mma %c, %b[0], %b[1]", half),
            "registers 'b' are not a tile that may stand here");
  EXPECT_EQ(error_in_text(tiles + "store_tile %y[0] stride 8, %a", half),
            "tile 'a' is of bf16, buffer 'y' of f32");
  EXPECT_EQ(error_in_text(tiles + "load_tile %a, %x[0] stride 16", half),
            "tile 'a' is of bf16, buffer 'x' of f32");
  EXPECT_EQ(error_in_text(tiles + "store_tile %x[0] stride 8, %c", half),
            "buffer 'x' is stored to, but is not marked as written");
  EXPECT_EQ(error_in_text(tiles + "load_tile %c, %x[0] stride -1", half),
            "the stride of a tile must be from 0 to 2147483647, got -1");
  EXPECT_EQ(error_in_text(tiles + "store %y[0] = %c", half), "tile 'c' is read as a register");
  EXPECT_EQ(error_in_text("regs %r: f32 load_tile %r, %x[0] stride 8"),
            "registers 'r' are not a tile that may stand here");
  EXPECT_EQ(error_in_text(tiles + "tiles %d: sum(f32, 16, 16, 16) mma %d, %a, %b[0]", half),
            "the tiles 'd', 'a' and 'b' of an mma are of different products");
  EXPECT_EQ(error_in_text(tiles + "tiles %d: right(f16, 16, 8, 16) mma %c, %a, %d", half),
            "the tiles 'a' and 'd' of an mma are of different dtypes");
  EXPECT_EQ(error_in_text("tiles %c: sum(bf16, 16, 8, 16)"),
            "tiles 'c' cannot be of bf16: expected a float, and f32 for sums");
  EXPECT_EQ(error_in_text("tiles %c: sum(f32, 16, 0, 16)"),
            "tiles 'c' of a product 16 x 0 x 16 must have dims from 1 to 256");
  EXPECT_EQ(error_in_text("tiles %c: sum(f32, 256, 256, 16)[2]"),
            "registers 'c' of shape [2] must have positive extents and at most 65536 elements");
}

TEST_F(VerifyTest, Tables) {
  kernel.grain = 0;
  EXPECT_EQ(error({}), "grain must be positive, got 0");
  kernel.grain = 1;
  kernel.buffers[0].size = -1;
  EXPECT_EQ(error({}), "buffer 'x' cannot have -1 elements");
  kernel.buffers[0].size = INT64_MAX / 2;
  EXPECT_EQ(error({}), "buffer 'x' cannot have 4611686018427387903 elements");
  kernel.buffers[0].size = 64;
  kernel.add_regs({"r", DType::f32, 3, {2}});
  EXPECT_EQ(error({}), "registers 'r' cannot have 3 lanes: expected a power of two up to 2048");
  kernel.regs[0] = {"r", DType::f32, 4, {1 << 10, 1 << 10}};
  EXPECT_EQ(error({}),
            "registers 'r' of shape [1024, 1024] must have positive extents and at most 65536 "
            "elements");
}

TEST_F(VerifyTest, OperandTypes) {
  Pool& p = pool();
  EXPECT_EQ(error_of(p.intern(Binary{BinaryOp::add, real(1), number(1)}, DType::f32)),
            "expected f32, got i64, in '1.0 + 1'");
  EXPECT_EQ(error_of(p.intern(Binary{BinaryOp::bit_and, real(1), real(2)}, DType::f32)),
            "this operation is of integers, in '1.0 & 2.0'");
  EXPECT_EQ(error_of(p.intern(Unary{UnaryOp::exp, number(1)}, DType::i64)),
            "this function is of floats, in 'exp(1)'");
  EXPECT_EQ(error_of(p.intern(Select{number(1), real(1), real(2)}, DType::f32)),
            "expected bool, got i64, in 'select(1, 1.0, 2.0)'");
  EXPECT_EQ(error_of(p.intern(Load{x, real(1), {}}, DType::f32)),
            "an index is i64, scalar or with one lane per element, in 'load %x[1.0]'");
  EXPECT_EQ(error_of(p.intern(Load{x, number(1), {}}, DType::f64)),
            "expected f32, got f64, in 'load %x[1]'");
  EXPECT_EQ(error_of(p.intern(Bitcast{number(1)}, DType::f32)),
            "bitcast keeps the bits, in 'bitcast(1, f32)'");
  EXPECT_EQ(error_of(p.intern(PairDot{number(1), number(2), real(0)}, DType::f32)),
            "expected i32, got i64, in 'pair_dot(1, 2, 0.0)'");
  EXPECT_EQ(error_of(number(1)), "expected f32, got i64, in '1'");
  EXPECT_EQ(error_of(p.var({99}, DType::f32)), "variable 99 does not exist");
  EXPECT_EQ(error_of(p.load({99}, number(0), DType::f32)), "buffer 99 does not exist");
}

TEST_F(VerifyTest, PoolsDoNotMix) {
  Pool other;
  EXPECT_EQ(error_of(other.number(1, DType::f32)),
            "an expression belongs to another kernel's pool");
}

TEST_F(VerifyTest, Scopes) {
  Var j = loop_var("j", 4);
  EXPECT_EQ(error({{Store{y, pool().var(j), real(0), {}}}}), "'%j' is not in scope, in '%j'");
  EXPECT_EQ(error({{loop(i, 4, LoopKind::serial, {})}}), "'%i' is bound again within its scope");
  EXPECT_EQ(error({{loop(j, 4, LoopKind::serial, {})}, {loop(j, 4, LoopKind::serial, {})}}), "")
      << "loops beside each other may share a variable";
  RegArray r = kernel.add_regs({"r", DType::f32, 1, {2}});
  SetReg set{r, {number(0)}, real(1)};
  EXPECT_EQ(error({{set}}), "registers 'r' are not in scope");
  EXPECT_EQ(error({{DeclareRegs{r}}, {set}}), "");
  EXPECT_EQ(error({{DeclareRegs{r}}, {DeclareRegs{r}}}), "registers 'r' are declared again");
  EXPECT_EQ(error({{DeclareRegs{r}}, {SetReg{r, {}, real(1)}}}),
            "registers 'r' have 1 dims, got 0 indices");
}

TEST_F(VerifyTest, Loops) {
  Var j = loop_var("j", 4);
  For bad = loop(j, 4, LoopKind::serial, {});
  bad.step = 0;
  EXPECT_EQ(error({{bad}}), "a loop step must be positive, got 0");
  EXPECT_EQ(error({{loop(j, 8, LoopKind::serial, {})}}),
            "'%j' runs over 0..8, outside its range [0, 3]");
  EXPECT_EQ(error({{loop(j, 4, LoopKind::parallel, {})}}),
            "a parallel loop stands in another loop");
  bad = loop(j, 4, LoopKind::serial, {});
  bad.hi = pool().boolean(true);
  EXPECT_EQ(error({{bad}}), "expected i64, got bool, in 'true'");
  EXPECT_EQ(error({{If{number(1), {}, {}}}}), "expected bool, got i64, in '1'");
}

TEST_F(VerifyTest, Stores) {
  EXPECT_EQ(error({{Store{x, number(0), real(0), {}}}}),
            "buffer 'x' is stored to, but is not marked as written");
  EXPECT_EQ(error({{Store{y, number(0), splat(real(0), 4), pool().boolean(true)}}}),
            "expected boolx4, got bool, in 'true'");
  EXPECT_EQ(error({{Prefetch{x, number(0), 7}}}), "a prefetch's locality is 1, 2 or 3, got 7");
}

TEST_F(VerifyTest, WhatSchedulingMustHaveDone) {
  Var j = loop_var("j", 4);
  Expr sum = reduce(ReduceOp::sum, {j}, {number(4)}, pool().load(x, pool().var(j), DType::f32));
  Block body = {{Store{y, pool().var(i), sum, {}}}};
  EXPECT_EQ(error(body, false), "");
  EXPECT_EQ(error(body),
            "a scheduled kernel has no reduce expressions, in 'sum[%j in 0..4](load %x[%j])'");
  RegArray r = kernel.add_regs({"r", DType::f32, 1, {4}});
  Block set = {{SetReg{r, {pool().var(j)}, real(1)}}};
  EXPECT_EQ(error({{DeclareRegs{r}}, {loop(j, 4, LoopKind::unroll, set)}}), "");
  EXPECT_EQ(error({{DeclareRegs{r}}, {loop(j, 4, LoopKind::serial, set)}}),
            "an index of registers 'r' is no constant after unrolling, in '%j'");
  kernel.body = {{loop(i, 64, LoopKind::serial, {})}};
  EXPECT_EQ(message(true), "expected one parallel loop as its body");
  EXPECT_EQ(message(false), "");
}

}  // namespace
}  // namespace lathe::loop
