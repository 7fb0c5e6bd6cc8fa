// The text form: what is printed parses back to the same kernel, and wrong text gets a clear error.
#include "ir/loop/text.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/loop/expand_math.h"
#include "ir/loop/pool.h"

namespace lathe::loop {
namespace {

// The text of each kernel is canonical: printing what it parses to gives it back.
const char* const kKernels[] = {
    R"(kernel @relu(%x: f32[1024], %y: f32[1024] out) {
  parallel %i in 0..64 {
    store %y[%i*16] = max(load f32x16 %x[%i*16], 0.0)
  }
}
)",
    R"(kernel @gemm(%a: f32[8192], %b: f32[65536], %c: f32[4096] out) grain 4 {
  parallel %n in 0..16 {
    regs %acc: f32x16[4, 2]
    regs %t: f32x16
    unroll %i in 0..4 {
      unroll %j in 0..2 {
        %acc[%i, %j] = 0.0
      }
    }
    for %k in 0..256 step 4 {
      prefetch %b[%n*8192 + %k*32 + 2048] locality 2
      unroll %u in 0..4 {
        unroll %i in 0..4 {
          %t = splat(load %a[%i*256 + %k + %u], 16)
          unroll %j in 0..2 {
            %acc[%i, %j] = fma(%t, load f32x16 %b[%n*8192 + %k*32 + %u*32 + %j*16], %acc[%i, %j])
          }
        }
      }
    }
    unroll %i in 0..4 {
      store nontemporal %c[%n*32 + %i*512] = %acc[%i, 0]
      store %c[%n*32 + %i*512 + 16] mask(ramp(%n*32 + 16, 1, 16) < 500) = %acc[%i, 1] * 2.0 - 1.0
    }
  }
}
)",
    R"(kernel @writes(%at: i64[64], %x: f32[64], %y: f32[8] out) {
  parallel %i in 0..64 {
    store atomic sum %y[load %at[%i]] = load %x[%i]
    store atomic max %y[load %at[%i]] mask(%i < 3) = load %x[%i]
  }
}
)",
    R"(kernel @softmax(%x: bf16[12288], %y: bf16[12288] out) {
  parallel %r in 0..16 {
    for %i in 0..768 {
      let %top: f32 = max[%k in 0..768](f32(load %x[%r*768 + %k]))
      let %all: f32 = sum[%k in 0..768](exp(f32(load %x[%r*768 + %k]) - %top))
      store %y[%r*768 + %i] = bf16(exp(f32(load %x[%r*768 + %i]) - %top) / %all)
    }
  }
}
)",
    R"(kernel @every(%x: bool[64], %y: bool[1] out) {
  parallel %i in 0..1 {
    regs %acc: boolx16
    %acc = true
    for %k in 0..4 {
      %acc = %acc && load boolx16 %x[%k*16]
    }
    store %y[0] = reduce_lanes(all, %acc)
  }
}
)",
    R"(kernel @odds(%x: i32[64], %z: f64[64] out, %tmp: u8[64] scratch, %s: bool[64] stack) {
  dim %n in [1, 64]
  parallel %i in 0..64 {
    let %a: i32 = load %x[(%i + 3) % 64] mask(%i < 61 && %i != 7 || %i == 9)
    if %i//8 >= 4 {
      store %tmp[%i - %i % 8] = u8(-%a >> 3) & 240
      store %s[%i] = is_nan(0.1 / f64(%a)) ^ true
    } else {
      store %z[%i] = select(%a < 0, -inf, f64(%a) * 0.1)
    }
    store %z[argmin[%j in 0..8, %k in 0..%n](-load %x[%j*8 + %k])] = pow(f64(2.0), nan)
    store %z[0] = f64(reduce_lanes(sum, bitcast(load i32x4 %x[ramp(%i, 2, 4)], f32)))
    store %z[4] = f64(shuffle(load i32x4 %x[%i], load i32x4 %x[0], [0, 7, 3, 3]))
  }
}
)",
    R"(kernel @dots(%a: bf16[8], %b: bf16[64], %y: f32[32] out) {
  parallel %i in 0..2 {
    regs %pairs: i32x16
    %pairs = bitcast(load bf16x32 %b[%i*32], i32)
    let %first: i32 = bitcast(load bf16x2 %a[%i*2] mask(ramp(0, 1, 2) < 1), i32)
    store %y[%i*16] = pair_dot(splat(%first, 16), %pairs, 0.5)
  }
}
)",
    R"(kernel @tiles(%a: bf16[2048], %b: bf16[1024], %c: f32[1024] out, %t: bf16[512] shared) {
  parallel %g in 0..2 {
    let %first: i64 = %g*16
    thread %w in 0..2 {
      tiles %acc: sum(f32, 16, 16, 16)[2]
      unroll %j in 0..2 {
        %acc[%j] = 0.0
      }
      for %k in 0..64 step 16 {
        tiles %x: left(bf16, 16, 16, 16)
        tiles %y: right(bf16, 16, 16, 16)
        if %w < 1 {
          store %t[0] = load bf16x256 %a[%first*64 + %k]
        }
        barrier
        load_tile %x, %t[0] stride 16
        load_tile %y, %b[%k*16 + %w] stride 16 transposed
        mma %acc[1], %x, %y
        barrier
      }
      store_tile %c[%first*32 + %w*16] stride 32, %acc[1]
    }
  }
}
)",
};

Result<Kernel> parse(const std::string& text) {
  LocTable locs;
  return parse_kernel(text, locs);
}
std::string error(const std::string& text) {
  Result<Kernel> kernel = parse(text);
  return kernel.ok() ? "" : kernel.error().code + ": " + kernel.error().message;
}
// A statement in a loop over %i in 0..4 with buffers %x (f32, read) and %y (f32, written).
std::string error_in(const std::string& stmt) {
  return error("kernel @k(%x: f32[4], %y: f32[4] out) { parallel %i in 0..4 { " + stmt + " } }");
}

TEST(Text, CanonicalTextIsPrintedBack) {
  for (const char* text : kKernels) {
    Result<Kernel> kernel = parse(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message << "\n" << text;
    EXPECT_EQ(print(*kernel), text);
  }
}

TEST(Text, ExpandedMathRoundTrips) {
  for (const char* function : {"exp", "tanh", "erf", "log1p", "sin"}) {
    std::string text =
        "kernel @f(%x: f32[64], %y: f32[64] out) { parallel %i in 0..4 { store "
        "%y[%i*16] = " +
        std::string(function) + "(load f32x16 %x[%i*16]) } }";
    Result<Kernel> kernel = parse(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    expand_math(*kernel);
    std::string printed = print(*kernel);
    Result<Kernel> again = parse(printed);
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << printed;
    EXPECT_EQ(print(*again), printed);
    EXPECT_EQ(structural_hash(*again), structural_hash(*kernel));
  }
}

// Random float expressions with sharing, f32 constants of all magnitudes and deep chains.
TEST(Text, RandomExpressionsRoundTrip) {
  std::mt19937 random(3);
  auto pick = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 200; ++round) {
    Kernel kernel;
    kernel.name = "f";
    kernel.pool = std::make_shared<Pool>();
    Pool& pool = *kernel.pool;
    BufferRef x = kernel.add_buffer({"x", DType::f32, 64});
    BufferRef y = kernel.add_buffer({"y", DType::f32, 64, Space::global, true});
    Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 63});
    std::vector<Expr> values = {pool.load(x, pool.var(i), DType::f32)};
    for (size_t n = 0; n < 5 + pick(200); ++n) {
      Expr a = values[pick(values.size())];
      Expr b = values[values.size() - 1 - pick(std::min<size_t>(values.size(), 4))];
      uint32_t bits = static_cast<uint32_t>(random());
      Expr constant = bitcast(pool.integer(static_cast<int32_t>(bits), DType::i32), DType::f32);
      Expr integer = bitcast(b, DType::i32);
      Expr made[] = {a + b,
                     a - b,
                     a * constant,
                     constant - b,
                     -b,
                     fma(a, b, constant),
                     select(lt(a, b), a, constant),
                     max(a, constant),
                     exp(b),
                     a / b,
                     bitcast(binary(BinaryOp::bit_xor, integer, integer * 3 - 7), DType::f32),
                     cast(cast(b, DType::f64) * 0.1, DType::f32)};
      values.push_back(made[pick(12)]);
    }
    kernel.body = {{For{i,
                        pool.integer(0),
                        pool.integer(64),
                        1,
                        LoopKind::parallel,
                        {{Store{y, pool.var(i), values.back(), {}}}}}}};
    std::string printed = print(kernel);
    Result<Kernel> again = parse(printed);
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << printed;
    EXPECT_EQ(print(*again), printed);
    EXPECT_EQ(structural_hash(*again), structural_hash(kernel)) << printed;
  }
}

TEST(Text, LongChainsAndSharedPartsStayShort) {
  Kernel kernel;
  kernel.name = "f";
  kernel.pool = std::make_shared<Pool>();
  Pool& pool = *kernel.pool;
  BufferRef y = kernel.add_buffer({"y", DType::f32, 1, Space::global, true});
  Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 0});
  Expr e = cast(pool.var(i), DType::f32);
  for (int n = 0; n < 3000; ++n) e = e * e + exp(e);
  kernel.body = {{For{i,
                      pool.integer(0),
                      pool.integer(1),
                      1,
                      LoopKind::parallel,
                      {{Store{y, pool.integer(0), e, {}}}}}}};
  std::string printed = print(kernel);
  EXPECT_LT(printed.size(), size_t{200000});
  Result<Kernel> again = parse(printed);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(structural_hash(*again), structural_hash(kernel));
}

TEST(Text, NamesThatCollideAreToldApart) {
  Kernel kernel;
  kernel.name = "net.0/weird name";
  kernel.pool = std::make_shared<Pool>();
  Pool& pool = *kernel.pool;
  BufferRef a = kernel.add_buffer({"net.0.weight", DType::f32, 4});
  BufferRef b = kernel.add_buffer({"net.0.weight", DType::f32, 4, Space::global, true});
  Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 1});
  Var j = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 1});
  Expr index = pool.var(i) * 2 + pool.var(j);
  Block inner = {{Store{b, index, pool.load(a, index, DType::f32), {}}}};
  kernel.body = {{For{i,
                      pool.integer(0),
                      pool.integer(2),
                      1,
                      LoopKind::parallel,
                      {{For{j, pool.integer(0), pool.integer(2), 1, LoopKind::serial, inner}}}}}};
  EXPECT_EQ(print(kernel),
            "kernel @net_0_weird_name(%net_0_weight: f32[4], %net_0_weight_1: f32[4] out) {\n"
            "  parallel %i in 0..2 {\n"
            "    for %i_1 in 0..2 {\n"
            "      store %net_0_weight_1[%i*2 + %i_1] = load %net_0_weight[%i*2 + %i_1]\n"
            "    }\n"
            "  }\n"
            "}\n");
}

TEST(Text, HashSeesStructureAndNothingElse) {
  auto hash = [](std::string text, const char* from, const char* to) {
    if (size_t at = text.find(from); at != std::string::npos)
      text.replace(at, std::string(from).size(), to);
    Result<Kernel> kernel = parse(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().message;
    return kernel.ok() ? structural_hash(*kernel) : 0;
  };
  const char* relu = kKernels[0];
  uint64_t same = hash(relu, "", "");
  EXPECT_EQ(hash(relu, "@relu", "@other"), same);
  EXPECT_EQ(hash("kernel @r(%a: f32[1024], %b: f32[1024] out) { parallel %k in 0..64 { store "
                 "%b[%k*16] = max(load f32x16 %a[%k*16], 0.0) } }",
                 "", ""),
            same);
  EXPECT_NE(hash(relu, "0..64", "0..63"), same);
  EXPECT_NE(hash(relu, "max", "min"), same);
  EXPECT_NE(hash(relu, "0.0", "-0.0"), same);
  EXPECT_NE(hash(relu, "f32[1024]", "f32[1025]"), same);
  EXPECT_NE(hash(relu, "store", "store nontemporal"), same);
  const char* add =
      "kernel @a(%y: f32[8] out) { parallel %i in 0..8 { store atomic sum %y[%i] = 1.0 } }";
  EXPECT_NE(hash(add, "atomic sum", "atomic prod"), hash(add, "", ""));
  EXPECT_NE(hash(add, "atomic sum ", ""), hash(add, "", ""));
  EXPECT_NE(hash(relu, "out) {", "out) grain 2 {"), same);
}

TEST(Text, ErrorsSayWhatWasExpected) {
  EXPECT_EQ(error("kernel relu() {}"), "syntax: expected a name such as @relu, got 'relu'");
  EXPECT_EQ(error_in("store %y[%i] = load %z[%i]"),
            "undefined-value: '%z' is not defined; did you mean '%x'?");
  EXPECT_EQ(error_in("store %y[%i] = sqtr(load %x[%i])"),
            "unknown-op: there is no function 'sqtr'; did you mean 'sqrt'?");
  EXPECT_EQ(error_in("store %y[%i] = load %x[%i] + %i"), "dtype-mismatch: expected f32, got i64");
  EXPECT_EQ(error_in("store %y[%i] = %x"),
            "dtype-mismatch: '%x' is a buffer: read it with 'load %x[...]'");
  EXPECT_EQ(error_in("store %y[1.5] = 0.0"), "dtype-mismatch: expected i64, got the number 1.5");
  EXPECT_EQ(error_in("store %y[%i] = load f64 %x[%i]"),
            "dtype-mismatch: load of f64 from a buffer of f32");
  EXPECT_EQ(error_in("store %y[%i] = load f32x3 %x[%i]"),
            "bad-value: kernel 'k': 3 lanes are not a power of two up to 2048, in "
            "'load f32x3 %x[%i]'");
  EXPECT_EQ(error_in("store %x[%i] = 0.0"),
            "bad-form: kernel 'k': buffer 'x' is stored to, but is not marked as written");
  EXPECT_EQ(error_in("for %i in 0..2 { }"), "redefined-value: '%i' is already defined here");
  EXPECT_EQ(error_in("loop"), "syntax: expected a statement or '}', got 'loop'");
  EXPECT_EQ(error_in("store %y[%i] = fma(1.0, 2.0)"),
            "operand-count: 'fma' takes 3 operands, got 2");
  EXPECT_EQ(error_in("store %y[9223372036854775808] = 0.0"),
            "too-large: 9223372036854775808 does not fit into i64");
}

TEST(Text, DeepNestingIsRefused) {
  std::string open(100000, '(');
  EXPECT_EQ(error_in("store %y[" + open), "too-large: the expression nests too deeply");
  EXPECT_EQ(error_in("store %y[" + std::string(100000, '-')),
            "too-large: the expression nests too deeply");
  std::string blocks;
  for (int n = 0; n < 10000; ++n) blocks += "if true { ";
  EXPECT_EQ(error_in(blocks), "too-large: statements nest too deeply");
}

// No text may crash the parser, the verifier, the printer or the evaluator.
TEST(Text, MutatedTextIsHandled) {
  std::mt19937 random(9);
  for (int round = 0; round < 3000; ++round) {
    std::string text = kKernels[random() % 4];
    for (size_t n = 0; n <= random() % 4; ++n) {
      size_t at = random() % text.size();
      const char* pieces[] = {"", "0", "%", "[", "}", "x16", "-", "99999999999", "%i", "f64", " "};
      text.replace(at, random() % 4, pieces[random() % 11]);
    }
    Result<Kernel> kernel = parse(text);
    if (!kernel.ok()) {
      EXPECT_FALSE(kernel.error().is_internal);
      EXPECT_FALSE(kernel.error().message.empty());
      continue;
    }
    Result<Kernel> again = parse(print(*kernel));
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text << "\n" << print(*kernel);
    EXPECT_EQ(structural_hash(*kernel), structural_hash(*again)) << text;
  }
}

}  // namespace
}  // namespace lathe::loop
