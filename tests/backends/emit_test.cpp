// The CPU emitter against the evaluator of loop IR.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "backends/cpu/jit.h"
#include "backends/cpu/memory.h"
#include "backends/placement/frame.h"
#include "ir/loop/expand_math.h"
#include "ir/loop/pool.h"
#include "ir/loop/text.h"
#include "tests/backends/gemm_kernel.h"
#include "tests/backends/kernel_case.h"
#include "tests/backends/random_kernel.h"

namespace lathe {
namespace {

// Runs compiled code over the whole parallel range, in two calls.
Status run_compiled(const loop::Kernel& kernel, cpu::EmitOptions options, Memories& memory) {
  cpu::ObjectCache cache;
  loop::Kernel expanded = kernel;
  loop::expand_math(expanded);
  LATHE_TRY(auto jit, cpu::Jit::compile({{&expanded, options}}, 1, cache));
  LATHE_TRY(cpu::KernelFrame frame, placement::kernel_frame(kernel, "cpu"));
  LATHE_TRY(cpu::Block scratch,
            cpu::Block::allocate(static_cast<size_t>(frame.scratch_bytes), "scratch"));
  std::vector<cpu::Block> blocks;
  std::vector<void*> pointers;
  for (auto& bytes : memory) {
    LATHE_TRY(cpu::Block block, cpu::Block::allocate(bytes.size() + 64, "a buffer"));
    std::memcpy(block.address(), bytes.data(), bytes.size());
    pointers.push_back(block.address());
    blocks.push_back(std::move(block));
  }
  int64_t middle = (frame.lo.number + frame.hi.number) / 2;
  if (middle > frame.lo.number && frame.step == 1)
    jit->functions()[0](pointers.data(), frame.lo.number, middle, scratch.address());
  else
    middle = frame.lo.number;
  jit->functions()[0](pointers.data(), middle, frame.hi.number, scratch.address());
  for (size_t i = 0; i < memory.size(); ++i)
    std::memcpy(memory[i].data(), blocks[i].address(), memory[i].size());
  return Ok{};
}

class EmitTest : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    auto isa = cpu::select_isa(cpu::isa_name(GetParam()));
    if (!isa.ok()) GTEST_SKIP() << isa.error().message;
  }
};

void compare(const loop::Kernel& kernel, cpu::EmitOptions options, uint64_t seed) {
  expect_kernel_runs(
      kernel,
      [&](const loop::Kernel& k, Memories& memory) { return run_compiled(k, options, memory); },
      seed);
}

TEST_P(EmitTest, RandomKernelsMatchTheEvaluator) {
  const Multipliers target{true, GetParam() == cpu::Isa::avx512_bf16};
  for (uint64_t seed = 1; seed <= 150 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    compare(make_random_kernel(seed, target), {GetParam(), seed % 4 != 0}, seed);
  }
}

TEST_P(EmitTest, RegisterTileProduct) {
  int lanes = GetParam() == cpu::Isa::avx2 ? 8 : 16;
  for (GemmShape shape : {GemmShape{29, 96, 24, 6, 2, lanes}, GemmShape{14, 48, 16, 4, 3, lanes},
                          GemmShape{1, 32, 8, 1, 1, lanes}}) {
    loop::Kernel kernel = make_gemm_kernel(shape);
    compare(kernel, {GetParam(), true}, 3);
  }
}

TEST_P(EmitTest, RegisterTileProductHasNoSpills) {
  bool is_wide = GetParam() != cpu::Isa::avx2;
  GemmShape shape =
      is_wide ? GemmShape{128, 768, 768, 14, 2, 16} : GemmShape{128, 768, 768, 6, 2, 8};
  loop::Kernel kernel = make_gemm_kernel(shape);
  auto text = cpu::generate_code({{&kernel, {GetParam(), true}}}, cpu::CodeForm::assembly);
  ASSERT_TRUE(text.ok()) << describe(text.error());
  EXPECT_EQ(text->find(is_wide ? "64-byte Spill" : "32-byte Spill"), std::string::npos);
  EXPECT_NE(text->find("vfmadd"), std::string::npos);
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST_P(EmitTest, ClampIsTwoInstructions) {
  loop::Kernel kernel = make_map(8, [](loop::Expr x) {
    return loop::min(loop::max(x, loop::constant_like(x, 0)), loop::constant_like(x, 6));
  });
  auto text = cpu::generate_code({{&kernel, {GetParam(), true}}}, cpu::CodeForm::assembly);
  ASSERT_TRUE(text.ok()) << describe(text.error());
  EXPECT_EQ(count(*text, "vmaxps"), 1) << *text;
  EXPECT_EQ(count(*text, "vminps"), 1) << *text;
  EXPECT_EQ(count(*text, "vcmp"), 0) << *text;
}

TEST_P(EmitTest, MinAndMaxGiveNanWhenEitherSideIsNan) {
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
    ASSERT_TRUE(run_compiled(kernel, {GetParam(), true}, memory).ok());
    EXPECT_EQ(first_difference(DType::f32, expected[1], memory[1]), -1);
  }
}

TEST_P(EmitTest, MultiplyAndAddStaySeparate) {
  loop::Kernel kernel = make_map(8, [](loop::Expr x) { return x * x + x; });
  auto text = cpu::generate_code({{&kernel, {GetParam(), true}}}, cpu::CodeForm::assembly);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(count(*text, "vfmadd"), 0);
}

TEST_P(EmitTest, DotsOfPairsAreOneInstructionWhereThereIsOne) {
  LocTable locs;
  auto kernel = loop::parse_kernel(R"(kernel @dots(%a: bf16[9], %b: bf16[128], %y: f32[64] out) {
  parallel %i in 0..4 {
    let %first: i32 = bitcast(load bf16x2 %a[%i*2 + 1], i32)
    store %y[%i*16] = pair_dot(splat(%first, 16), bitcast(load bf16x32 %b[%i*32], i32), 0.5)
  }
}
)",
                                   locs);
  ASSERT_TRUE(kernel.ok()) << describe(kernel.error());
  auto text = cpu::generate_code({{&*kernel, {GetParam(), true}}}, cpu::CodeForm::assembly);
  if (GetParam() != cpu::Isa::avx512_bf16) {
    ASSERT_FALSE(text.ok());
    EXPECT_NE(text.error().message.find("has no dot of pairs"), std::string::npos);
    return;
  }
  ASSERT_TRUE(text.ok()) << describe(text.error());
  EXPECT_EQ(count(*text, "{1to16}"), 1) << *text;
  Memories memory = make_random_memory(*kernel, 1);
  for (size_t buffer : {size_t{0}, size_t{1}}) {
    for (size_t i = 0; i < memory[buffer].size() / 2; ++i) {
      const uint16_t half = f32_to_bf16(static_cast<float>(i % 13) - 6);
      std::memcpy(&memory[buffer][2 * i], &half, 2);
    }
  }
  Memories expected = memory;
  ASSERT_TRUE(evaluate_kernel(*kernel, expected).ok());
  ASSERT_TRUE(run_compiled(*kernel, {GetParam(), true}, memory).ok());
  EXPECT_EQ(first_difference(DType::f32, expected[2], memory[2]), -1);
}

// Steps that need one vector, two and a gather; a buffer of their size; masked lanes outside of it.
TEST_P(EmitTest, LanesNearEachOtherAreReadWithoutAGather) {
  struct {
    int lanes;
    double step;
    int64_t size;
    bool is_near;
  } const cases[] = {{16, 0.5, 97, true},
                     {8, 0.9, 16, true},
                     {16, 1.7, 64, true},
                     {32, 1.7, 70, true},
                     {16, 3.0, 97, false}};
  for (const auto& test : cases) {
    for (const char* dtype : {"f32", "bf16", "i32", "u8"}) {
      SCOPED_TRACE(fmt::format("{} by {} in {} of {}", test.lanes, test.step, test.size, dtype));
      LocTable locs;
      auto kernel =
          loop::parse_kernel(fmt::format(R"(kernel @near(%x: {0}[{1}], %y: {0}[160] out) {{
  parallel %i in 0..160 step {2} {{
    def %at = i64(f32(ramp(%i, 1, {2})) * {3:.1f})
    store %y[%i] = load {0}x{2} %x[%at + -3] mask(2 < %at && %at < {4})
  }}
}}
)",
                                         dtype, test.size, test.lanes, test.step, test.size + 3),
                             locs);
      ASSERT_TRUE(kernel.ok()) << describe(kernel.error());
      auto text = cpu::generate_code({{&*kernel, {GetParam(), true}}}, cpu::CodeForm::assembly);
      ASSERT_TRUE(text.ok()) << describe(text.error());
      EXPECT_EQ(count(*text, "vpermd") + count(*text, "vpermps") > 0, test.is_near) << *text;
      compare(*kernel, {GetParam(), true}, 5);
    }
  }
}

TEST_P(EmitTest, TextFormsShowTheKernel) {
  loop::Kernel kernel = make_map(8, [](loop::Expr x) { return x + x; });
  auto ir = cpu::generate_code({{&kernel, {GetParam(), true}}, {&kernel, {GetParam(), true}}},
                               cpu::CodeForm::llvm_ir);
  ASSERT_TRUE(ir.ok());
  EXPECT_NE(ir->find("define void @map("), std::string::npos);
  EXPECT_NE(ir->find("define void @map_2("), std::string::npos);
  auto object = cpu::generate_code({{&kernel, {GetParam(), true}}}, cpu::CodeForm::object);
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(object->substr(1, 3), "ELF");
}

TEST_P(EmitTest, UnsupportedFormsAreErrors) {
  loop::Kernel empty;
  empty.name = "empty";
  empty.pool = std::make_shared<loop::Pool>();
  cpu::ObjectCache cache;
  auto no_loop = cpu::Jit::compile({{&empty, {GetParam(), true}}}, 1, cache);
  ASSERT_FALSE(no_loop.ok());
  EXPECT_EQ(no_loop.error().code, "unsupported");
  EXPECT_NE(no_loop.error().message.find("'empty'"), std::string::npos);

  loop::Kernel endless = make_map(8, [](loop::Expr x) { return x; });
  auto& loop = std::get<loop::For>(endless.body[0].kind);
  loop::Pool& pool = *endless.pool;
  loop::Var u = endless.add_var({"u"});
  loop.body = {{loop::For{u, pool.integer(0), pool.integer(int64_t{1} << 60), 1,
                          loop::LoopKind::unroll, loop.body}}};
  auto too_long = cpu::Jit::compile({{&endless, {GetParam(), true}}}, 1, cache);
  ASSERT_FALSE(too_long.ok());
  EXPECT_NE(too_long.error().message.find("statements"), std::string::npos);
}

// Tests of an instruction set skip where the processor lacks it. Linux is asked as well, so that
// they cannot all skip unseen.
TEST(CpuFeatures, AreThoseThatLinuxSees) {
  std::set<std::string> seen;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; seen.empty() && std::getline(file, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line);
      seen.insert(std::istream_iterator<std::string>(words), {});
    }
  ASSERT_FALSE(seen.empty());
  std::set<std::string> needed;
  const auto expect_as_seen = [&](std::string_view isa, std::set<std::string> more) {
    needed.merge(more);
    const bool has_all = std::includes(seen.begin(), seen.end(), needed.begin(), needed.end());
    EXPECT_EQ(cpu::select_isa(isa).ok(), has_all) << isa;
  };
  expect_as_seen("avx2", {"avx2", "fma", "f16c", "bmi2"});
  expect_as_seen("avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"});
  expect_as_seen("avx512_bf16", {"avx512_bf16"});
}

TEST(CpuFeatures, UnknownInstructionSetNamesTheChoices) {
  auto isa = cpu::select_isa("avx521");
  ASSERT_FALSE(isa.ok());
  EXPECT_NE(isa.error().message.find("did you mean 'avx512'?"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Isas, EmitTest,
                         testing::Values(cpu::Isa::avx2, cpu::Isa::avx512, cpu::Isa::avx512_bf16),
                         [](const auto& test) { return std::string(cpu::isa_name(test.param)); });

}  // namespace
}  // namespace lathe
