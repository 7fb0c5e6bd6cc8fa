// The WebAssembly emitter against the evaluator of loop IR, in Node.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/wasm/emit.h"
#include "backends/wasm/node/process.h"
#include "ir/loop/expand_math.h"
#include "ir/loop/pool.h"
#include "ir/loop/text.h"
#include "tests/backends/gemm_kernel.h"
#include "tests/backends/kernel_case.h"
#include "tests/backends/random_kernel.h"

namespace lathe {
namespace {

using wasm::EmitOptions;
using wasm::Isa;

Result<wasm::Module> make_module(const loop::Kernel& kernel, EmitOptions options,
                                 int64_t num_bytes = 0) {
  loop::Kernel expanded = kernel;
  loop::expand_math(expanded);
  LATHE_TRY(wasm::Function function, wasm::emit_kernel(expanded, kernel.name, options));
  wasm::Module module;
  module.name = "test";
  module.num_pages = static_cast<uint32_t>(num_bytes / wasm::kPageBytes) + 2;
  module.functions.push_back(std::move(function));
  return module;
}

std::string isa_name(Isa isa) { return isa == Isa::relaxed ? "relaxed" : "simd128"; }

class WasmEmitTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    auto node = wasm::node_info();
    if (!node.ok()) GTEST_SKIP() << node.error().message;
    if (GetParam() == Isa::relaxed && !node->has_relaxed_simd)
      GTEST_SKIP() << "node " << node->version << " has no relaxed SIMD";
    auto process = wasm::NodeProcess::start(node->options);
    ASSERT_TRUE(process.ok()) << describe(process.error());
    process_ = *std::move(process);
  }

  // Runs the whole parallel range, in two calls.
  Status run(const loop::Kernel& kernel, EmitOptions options, Memories& memory) {
    LATHE_TRY(wasm::KernelFrame frame, wasm::kernel_frame(kernel));
    std::vector<int32_t> arguments;
    int64_t end = wasm::kLeastAddress;
    auto take = [&](size_t num_bytes) {
      int64_t address = end;
      end += static_cast<int64_t>((num_bytes + 127) / 64 * 64);
      return static_cast<int32_t>(address);
    };
    for (const auto& bytes : memory) arguments.push_back(take(bytes.size()));
    int32_t scratch = take(static_cast<size_t>(frame.scratch_bytes));
    LATHE_TRY(wasm::Module module, make_module(kernel, options, end));
    LATHE_DO(process_->load(encode(module), module.num_pages));
    for (size_t i = 0; i < memory.size(); ++i)
      LATHE_DO(process_->write(static_cast<uint32_t>(arguments[i]), memory[i]));
    int64_t middle = frame.step == 1 ? (frame.lo.number + frame.hi.number) / 2 : frame.lo.number;
    for (auto [lo, hi] : {std::pair{frame.lo.number, middle}, {middle, frame.hi.number}}) {
      if (lo >= hi) continue;
      std::vector<int32_t> all = arguments;
      all.insert(all.end(), {static_cast<int32_t>(lo), static_cast<int32_t>(hi), scratch});
      LATHE_DO(process_->call(kernel.name, all));
    }
    for (size_t i = 0; i < memory.size(); ++i)
      LATHE_DO(process_->read(static_cast<uint32_t>(arguments[i]), memory[i]));
    return Ok{};
  }

  void compare(const loop::Kernel& kernel, EmitOptions options, uint64_t seed) {
    expect_kernel_runs(
        kernel, [&](const loop::Kernel& k, Memories& memory) { return run(k, options, memory); },
        seed);
  }

  std::unique_ptr<wasm::NodeProcess> process_;
};

TEST_P(WasmEmitTest, RandomKernelsMatchTheEvaluator) {
  bool has_fma = GetParam() == Isa::relaxed;
  for (uint64_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    compare(make_random_kernel(seed, {has_fma}), {GetParam(), seed % 4 != 0}, seed);
  }
}

TEST_P(WasmEmitTest, RegisterTileProduct) {
  for (GemmShape shape : {GemmShape{29, 24, 24, 6, 2, 4}, GemmShape{14, 24, 16, 4, 3, 4},
                          GemmShape{1, 8, 8, 1, 1, 4}}) {
    loop::Kernel kernel = make_gemm_kernel(shape);
    Memories memory = make_random_memory(kernel, 3);
    // Small whole numbers: products are exact, whether they are rounded or not.
    for (size_t i = 0; i < 3; ++i)
      for (size_t at = 0; at < memory[i].size(); at += 4) {
        float number = static_cast<float>((at / 4 * 7 + i) % 15) - 7;
        std::memcpy(&memory[i][at], &number, 4);
      }
    Memories expected = memory;
    ASSERT_TRUE(evaluate_kernel(kernel, expected).ok());
    Status ran = run(kernel, {GetParam(), true}, memory);
    ASSERT_TRUE(ran.ok()) << describe(ran.error());
    EXPECT_EQ(first_difference(DType::f32, expected[3], memory[3]), -1);
  }
}

TEST_P(WasmEmitTest, MinAndMaxGiveNanWhenEitherSideIsNan) {
  constexpr float kNan = NAN;
  for (auto f : {+[](loop::Expr x) { return loop::max(x, loop::constant_like(x, 1)); },
                 +[](loop::Expr x) { return loop::min(loop::constant_like(x, 1), x); },
                 +[](loop::Expr x) { return loop::max(x, loop::sqrt(x)); },
                 +[](loop::Expr x) { return loop::min(loop::sqrt(x), x); }}) {
    loop::Kernel kernel = make_map(8, f);
    Memories memory = make_random_memory(kernel, 1);
    for (size_t i = 0; i < 32; i += 3) std::memcpy(&memory[0][4 * i], &kNan, 4);
    Memories expected = memory;
    ASSERT_TRUE(evaluate_kernel(kernel, expected).ok());
    ASSERT_TRUE(run(kernel, {GetParam(), true}, memory).ok());
    EXPECT_EQ(first_difference(DType::f32, expected[1], memory[1]), -1);
  }
}

// Every half there is, through f32 and back, and every rounding to one.
TEST_P(WasmEmitTest, HalvesConvertExactly) {
  using namespace loop;
  for (DType half : {DType::f16, DType::bf16})
    for (int lanes : {1, 8}) {
      Kernel kernel;
      kernel.name = "halves";
      kernel.pool = std::make_shared<Pool>();
      Pool& pool = *kernel.pool;
      constexpr int64_t kCount = 65536;
      BufferRef x = kernel.add_buffer({"x", half, kCount});
      BufferRef y = kernel.add_buffer({"y", DType::f32, kCount});
      BufferRef wide = kernel.add_buffer({"wide", DType::f32, kCount, Space::global, true});
      BufferRef narrow = kernel.add_buffer({"narrow", half, kCount, Space::global, true});
      Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, kCount / lanes - 1});
      Expr at = pool.var(i) * pool.integer(lanes);
      Block body = {
          {Store{wide, at, cast(pool.load(x, at, half, lanes), DType::f32), {}}},
          {Store{narrow, at, cast(pool.load(y, at, DType::f32, lanes), half), {}}},
      };
      kernel.body = {
          {For{i, pool.integer(0), pool.integer(kCount / lanes), 1, LoopKind::parallel, body}}};
      Memories memory = make_random_memory(kernel, 1);
      for (uint32_t n = 0; n < kCount; ++n) {
        auto bits = static_cast<uint16_t>(n);
        std::memcpy(&memory[0][2 * n], &bits, 2);
        // Near the values of a half, and half-way between them.
        float value = half == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
        uint32_t word;
        std::memcpy(&word, &value, 4);
        word += (half == DType::f16 ? 0x1000u : 0x8000u) + n % 3 - 1;
        std::memcpy(&memory[1][4 * n], &word, 4);
      }
      Memories expected = memory;
      ASSERT_TRUE(evaluate_kernel(kernel, expected).ok());
      Status ran = run(kernel, {GetParam(), true}, memory);
      ASSERT_TRUE(ran.ok()) << describe(ran.error());
      EXPECT_EQ(first_difference(DType::f32, expected[2], memory[2]), -1) << dtype_name(half);
      EXPECT_EQ(first_difference(half, expected[3], memory[3]), -1) << dtype_name(half);
    }
}

// Largest error in units of the last place, over `count` values from `low` to `high`.
struct Accuracy {
  const char* name;
  loop::Expr (*f)(loop::Expr);
  double (*exact)(double);
  double low, high;
  double most_relaxed, most_simd128;  // what is allowed
};

loop::Expr sine(loop::Expr x) { return loop::unary(loop::UnaryOp::sin, x); }
loop::Expr cosine(loop::Expr x) { return loop::unary(loop::UnaryOp::cos, x); }
loop::Expr power(loop::Expr x) {
  return loop::binary(loop::BinaryOp::pow, loop::constant_like(x, 1.01), x);
}
double exact_power(double x) { return std::pow(static_cast<double>(1.01f), x); }

constexpr Accuracy kAccuracies[] = {
    {"exp", loop::exp, std::exp, -80, 80, 1, 1},
    {"log", loop::log, std::log, 0.001, 50, 1, 1},
    {"tanh", loop::tanh, std::tanh, -9, 9, 2.5, 2.5},
    {"erf", loop::erf, std::erf, -3.5, 3.5, 1.2, 1.2},
    {"sin", sine, std::sin, 0.1, 3, 1.6, 1.6},
    {"cos", cosine, std::cos, 2, 4, 1.6, 2.2},
    {"pow", power, exact_power, -8000, 8000, 1.1, 80},
};

TEST_P(WasmEmitTest, MathIsAsExactAsStated) {
  using namespace loop;
  constexpr int64_t kCount = 4096;
  for (const Accuracy& row : kAccuracies) {
    Kernel kernel;
    kernel.name = "math";
    kernel.pool = std::make_shared<Pool>();
    Pool& pool = *kernel.pool;
    BufferRef x = kernel.add_buffer({"x", DType::f32, kCount});
    BufferRef y = kernel.add_buffer({"y", DType::f32, kCount, Space::global, true});
    Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, kCount / 4 - 1});
    Expr at = pool.var(i) * pool.integer(4);
    Store store{y, at, row.f(pool.load(x, at, DType::f32, 4)), {}};
    kernel.body = {
        {For{i, pool.integer(0), pool.integer(kCount / 4), 1, LoopKind::parallel, {{store}}}}};
    Memories memory = make_random_memory(kernel, 1);
    auto put = [&](int64_t n, float v) {
      std::memcpy(&memory[0][static_cast<size_t>(4 * n)], &v, 4);
    };
    auto value = [&](size_t buffer, int64_t n) {
      float v;
      std::memcpy(&v, &memory[buffer][static_cast<size_t>(4 * n)], 4);
      return v;
    };
    for (int64_t n = 0; n < kCount; ++n)
      put(n, static_cast<float>(row.low + (row.high - row.low) * static_cast<double>(n) / kCount));
    Status ran = run(kernel, {GetParam(), true}, memory);
    ASSERT_TRUE(ran.ok()) << describe(ran.error());
    double worst = 0;
    for (int64_t n = 0; n < kCount; ++n) {
      double exact = row.exact(value(0, n));
      float near = std::fabs(static_cast<float>(exact));
      double unit =
          static_cast<double>(std::nextafterf(near, INFINITY)) - static_cast<double>(near);
      worst = std::max(worst, std::fabs(value(1, n) - exact) / unit);
    }
    bool is_relaxed = GetParam() == Isa::relaxed;
    EXPECT_LE(worst, is_relaxed ? row.most_relaxed : row.most_simd128) << row.name;
  }
}

// The mask's disabled lanes lie outside of the whole memory.
TEST_P(WasmEmitTest, MasksKeepFromTouchingMemory) {
  using namespace loop;
  for (int lanes : {1, 4, 8})
    for (bool is_scattered : {false, true}) {
      if (lanes == 1 && is_scattered) continue;
      Kernel kernel;
      kernel.name = "masked";
      kernel.pool = std::make_shared<Pool>();
      Pool& pool = *kernel.pool;
      BufferRef x = kernel.add_buffer({"x", DType::f32, 64});
      BufferRef y = kernel.add_buffer({"y", DType::f32, 64, Space::global, true});
      Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 63});
      constexpr int64_t kFar = int64_t{1} << 29;  // times 4 bytes: 2 GiB away
      Expr at = pool.var(i) * pool.integer(kFar);
      Expr lane = lanes == 1 ? at : pool.ramp(at, 1, lanes);
      Expr on = lt(lane, lanes == 1 ? pool.integer(3) : splat(pool.integer(3), lanes));
      Expr index = is_scattered ? pool.ramp(at, 2, lanes) : at;
      Expr value = pool.load(x, index, DType::f32, lanes, on);
      kernel.body = {{For{i,
                          pool.integer(0),
                          pool.integer(64),
                          1,
                          LoopKind::parallel,
                          {{Store{y, index, value + constant_like(value, 1), on}}}}}};
      compare(kernel, {GetParam(), true}, 5);
    }
}

INSTANTIATE_TEST_SUITE_P(Isas, WasmEmitTest, testing::Values(Isa::simd128, Isa::relaxed),
                         [](const auto& test) { return isa_name(test.param); });

// ---- what is written ----------------------------------------------------------------------------

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
  return n;
}

std::string wat_of(const loop::Kernel& kernel, Isa isa) {
  auto module = make_module(kernel, {isa, true});
  EXPECT_TRUE(module.ok());
  return module.ok() ? to_wat(*module) : "";
}

TEST(WasmText, ShowsASmallKernel) {
  loop::Kernel kernel = make_map(4, [](loop::Expr x) { return loop::max(x, x * 0.5); });
  EXPECT_EQ(wat_of(kernel, Isa::relaxed), R"wat((module $test
  (import "env" "memory" (memory 2))
  (func $map (export "map")
    (param $x.0 i32) (param $y.1 i32) (param $lo i32) (param $hi i32) (param $scratch i32)
    (local i32)  ;; 5
    (local v128 v128 v128)  ;; 6 to 8
    local.get $lo
    local.set 5
    v128.const i32x4 0x3f000000 0x3f000000 0x3f000000 0x3f000000
    local.set 6
    loop  ;; i
      local.get $x.0
      local.get 5
      i32.const 16
      i32.mul
      i32.add
      v128.load
      local.tee 7
      local.get 6
      f32x4.mul
      local.set 8
      local.get $y.1
      local.get 5
      i32.const 16
      i32.mul
      i32.add
      local.get 8
      local.get 7
      local.get 8
      f32x4.pmax
      local.get 8
      local.get 8
      f32x4.ne
      i32x4.relaxed_laneselect
      v128.store
      local.get 5
      i32.const 1
      i32.add
      local.tee 5
      local.get $hi
      i32.lt_s
      br_if 0
    end
  )
)
)wat");
}

// The inner loop of a product: four steps of 2 loads, 6 operands and 12 multiply-adds each, with
// constant offsets from two pointers, and six integer instructions around them.
TEST(WasmText, RegisterTileProductIsTight) {
  std::string text = wat_of(make_gemm_kernel({128, 768, 768, 6, 2, 4}), Isa::relaxed);
  size_t begin = text.find("loop  ;; k"), end = text.find("br_if", begin);
  ASSERT_NE(begin, std::string::npos) << text;
  std::string loop = text.substr(begin, end - begin);
  EXPECT_EQ(count(loop, "v128.load offset") + count(loop, "v128.load\n"), 8) << loop;
  EXPECT_EQ(count(loop, "v128.load32_splat"), 24);
  EXPECT_EQ(count(loop, "f32x4.relaxed_madd"), 48);
  EXPECT_EQ(count(loop, "i32.add"), 3);  // two pointers and the counter
  EXPECT_EQ(count(loop, "i32.mul"), 0);
  EXPECT_EQ(count(loop, "i64."), 0);
}

TEST(WasmText, Simd128HasNoRelaxedInstructions) {
  std::string text = wat_of(make_gemm_kernel({6, 8, 8, 6, 2, 4}), Isa::simd128);
  EXPECT_EQ(count(text, "relaxed"), 0);
  EXPECT_GT(count(text, "f32x4.mul"), 0);
}

TEST(WasmText, ClampIsTwoInstructions) {
  std::string text = wat_of(make_map(4,
                                     [](loop::Expr x) {
                                       return loop::min(loop::max(x, loop::constant_like(x, 0)),
                                                        loop::constant_like(x, 6));
                                     }),
                            Isa::simd128);
  EXPECT_EQ(count(text, "f32x4.pmax"), 1) << text;
  EXPECT_EQ(count(text, "f32x4.pmin"), 1) << text;
  EXPECT_EQ(count(text, "v128.bitselect"), 0) << text;
}

TEST(WasmEmit, UnsupportedFormsAreErrors) {
  loop::Kernel empty;
  empty.name = "empty";
  empty.pool = std::make_shared<loop::Pool>();
  auto no_loop = wasm::emit_kernel(empty, "empty", {});
  ASSERT_FALSE(no_loop.ok());
  EXPECT_EQ(no_loop.error().code, "unsupported");
  EXPECT_NE(no_loop.error().message.find("'empty'"), std::string::npos);

  loop::Kernel endless = make_map(8, [](loop::Expr x) { return x; });
  auto& loop = std::get<loop::For>(endless.body[0].kind);
  loop::Pool& pool = *endless.pool;
  loop::Var u = endless.add_var({"u"});
  loop.body = {{loop::For{u, pool.integer(0), pool.integer(int64_t{1} << 60), 1,
                          loop::LoopKind::unroll, loop.body}}};
  auto too_long = wasm::emit_kernel(endless, "endless", {});
  ASSERT_FALSE(too_long.ok());
  EXPECT_NE(too_long.error().message.find("statements"), std::string::npos);

  loop::Kernel wide = make_map(8, [](loop::Expr x) { return x; });
  std::get<loop::For>(wide.body[0].kind).hi = wide.pool->integer(int64_t{1} << 40);
  auto too_wide = wasm::emit_kernel(wide, "wide", {});
  ASSERT_FALSE(too_wide.ok());
  EXPECT_NE(too_wide.error().message.find("32 bits"), std::string::npos);
}

}  // namespace
}  // namespace lathe
