// Every kernel of every op example compiles for a GPU, which takes NVRTC but no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/device/nvrtc.h"
#include "backends/cuda/emit.h"
#include "backends/cuda/emit_program.h"
#include "frontend/driver/build.h"
#include "ir/graph/text.h"
#include "ir/loop/text.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

// Empty when it is there. Where it has been installed for the tests, they fail without it.
std::string why_no_nvrtc() {
  static const Status nvrtc = cuda::find_nvrtc();
  if (nvrtc.ok()) return "";
  EXPECT_EQ(std::getenv("LATHE_EXPECTS_NVRTC"), nullptr) << nvrtc.error().message;
  return nvrtc.error().message;
}

class CudaExample : public testing::TestWithParam<ExampleCase> {};

TEST_P(CudaExample, CompilesForAnH200) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  auto example = build_example(GetParam());
  ASSERT_TRUE(example.ok()) << example.error().message;
  Model model;
  model.module = std::move(example->module);
  const Target& target = *find_target("sm_90");
  BuildFailure failure;
  auto lowered = lower(model, target, {.threads = 1}, failure);
  ASSERT_TRUE(lowered.ok()) << lowered.error().message << "\n" << print(model.module);
  auto source = cuda::emit_program(lowered->unit.program, target);
  ASSERT_TRUE(source.ok()) << source.error().message << "\n" << print(lowered->unit.program);
  auto code = cuda::compile_cuda(source->text, target.isa, cuda::CodeKind::ptx);
  ASSERT_TRUE(code.ok()) << code.error().message << "\n" << source->text;
  for (const std::string& symbol : source->symbols)
    if (!symbol.empty()) EXPECT_NE(code->find(".entry " + symbol), std::string::npos) << symbol;
}

// Forty kernels in units of their own: together these have each of them once.
TEST(CudaUnits, HaveTheKernelsOfAProgram) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  std::string text = "func @main(%x0: f32[7, 33]) -> f32[7, 33] {\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format(
        "  %y{0} = softmax(%x{0}) {{dim = -1}}\n  %x{1} = pad(%y{0}) {{pad = [0, 1]}}\n", i, i + 1);
  text = text.replace(text.find("f32[7, 33] {"), 10, "f32[7, 73]") + "  return %x40\n}";
  LocTable locs;
  auto model = load_text(text, "units.lathe", {}, locs);
  ASSERT_TRUE(model.ok()) << render(model.error(), locs);
  const Target& target = *find_target("sm_90");
  BuildFailure failure;
  auto lowered = lower(*model, target, {.threads = 1}, failure);
  ASSERT_TRUE(lowered.ok()) << render(lowered.error(), failure.locs);
  auto source = cuda::emit_program(lowered->unit.program, target);
  ASSERT_TRUE(source.ok()) << source.error().message;
  ASSERT_GT(source->units.size(), 2u);
  std::vector<std::string> texts;
  std::vector<int> found(source->symbols.size());
  for (const auto& unit : source->units) texts.push_back(unit.text);
  auto codes = cuda::compile_units(texts, target.isa, cuda::CodeKind::ptx);
  ASSERT_TRUE(codes.ok()) << codes.error().message;
  ASSERT_EQ(codes->size(), texts.size());
  for (size_t u = 0; u < texts.size(); ++u)
    for (size_t i : source->units[u].kernels) {
      EXPECT_NE((*codes)[u].find(".entry " + source->symbols[i] + "("), std::string::npos);
      ++found[i];
    }
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], source->symbols[i].empty() ? 0 : 1);
  texts.back() += "not C++";
  EXPECT_FALSE(cuda::compile_units(texts, target.isa, cuda::CodeKind::ptx).ok());
}

// Every way that a tile is filled, read and multiplied.
TEST(CudaTiles, CompileForAnH200) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const Target& target = *find_target("sm_90");
  for (const MatrixTile& tile : target.groups->tiles) {
    const std::string dtype(dtype_name(tile.dtype));
    const std::string dims = fmt::format(", {}, {}, {})", tile.m, tile.n, tile.k);
    const std::string text =
        "kernel @k(%a: " + dtype + "[4096], %c: f32[4096] out, %s: " + dtype +
        "[4096] shared) { parallel %g in 0..2 { thread %w in 0..4 { tiles %x: left(" + dtype +
        dims + "[2] tiles %y: right(" + dtype + dims + " tiles %acc: sum(f32" + dims +
        " store %s[%w*256] = load " + dtype +
        "x256 %a[%w*256] barrier load_tile %x[0], %s[%w*256] stride 16 load_tile %x[1], %s[0] "
        "stride 16 transposed %x[1] = " +
        dtype +
        "(2.0) load_tile %y, %s[8] stride 24 load_tile %y, %s[0] stride 16 transposed load_tile "
        "%y, %a[%w] stride 17 load_tile %acc, %c[0] stride 16 %acc = 0.5 mma %acc, %x[0], %y mma "
        "%acc, %x[1], %y store_tile %c[%g*1024 + %w*256] stride 16, %acc } } }";
    LocTable locs;
    auto kernel = loop::parse_kernel(text, locs);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error(), locs);
    auto source = cuda::emit_kernel(*kernel, "k", target, {});
    ASSERT_TRUE(source.ok()) << source.error().message;
    const std::string all = std::string(cuda::kPrelude) + cuda::kTilePrelude + *source;
    auto code = cuda::compile_cuda(all, target.isa, cuda::CodeKind::ptx);
    ASSERT_TRUE(code.ok()) << code.error().message << "\n" << *source;
    EXPECT_NE(code->find("ldmatrix.sync.aligned"), std::string::npos);
    EXPECT_NE(code->find("mma.sync.aligned.m16n8k16.row.col.f32." + dtype), std::string::npos);
  }
}

// Graphs over sizes, of the kinds of kernels that a library leaves.
constexpr const char* kSizedGraphs[] = {
    R"(dim s0 in [0, inf] hint 7
func @main(%x: f32[s0, 3], %b: f32[3]) -> f32[s0, 3] {
  %0 = add(%x, %b)
  %1 = gelu(%0)
  return %1
})",
    R"(dim s0 in [1, 64] hint 7
dim s1 in [1, 512] hint 5
func @main(%x: f16[s0, s1, 768], %w: f16[768]) -> f16[s0, s1, 768] {
  %0 = softmax(%x) {dim = -1}
  %1 = mul(%0, %w)
  return %1
})",
    R"(dim s0 in [1, inf] hint 7
func @main(%x: f32[4, s0], %m: bool[s0]) -> f32[4, s0], f32[4] {
  %0 = softmax(%x) {dim = -1}
  %1 = where(%m, %0, %x)
  %2 = sum(%1) {dim = [1], keepdim = false}
  return %1, %2
})",
    R"(dim s0 in [1, 64] hint 7
dim s1 in [8, 320] hint 32
func @main(%x: bf16[s0, 16, s1, s1]) -> bf16[s0, s1, 16, s1], bf16[s0, 16, s1//2, s1//2] {
  %0 = permute(%x) {dims = [0, 2, 1, 3]}
  %1 = clone(%0)
  %2 = max_pool2d(%x) {kernel_size = [2, 2], stride = [2, 2]}
  return %1, %2
})",
    R"(dim s0 in [1, inf] hint 7
func @main(%x: i64[s0], %t: f32[100, 12]) -> f32[s0, 12], i64[s0] {
  %0 = embedding(%t, %x)
  %1 = cumsum(%x) {dim = 0}
  return %0, %1
})",
    R"(dim s0 in [1, 512] hint 7
func @main(%q: f32[2, 4, s0, 16], %k: f32[2, 4, s0, 16], %v: f32[2, 4, s0, 16], %y: f64[s0, s0])
    -> f32[2, 4, s0, 16], f64[s0] {
  %0 = attention(%q, %k, %v) {is_causal = true}
  %1 = mean(%y) {dim = [0], keepdim = false}
  return %0, %1
})",
};

TEST(CudaSizes, CompileForAnH200) {
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const Target& target = *find_target("sm_90");
  bool has_large = false;
  for (const char* text : kSizedGraphs) {
    LocTable locs;
    auto model = load_text(text, "sizes.lathe", {}, locs);
    ASSERT_TRUE(model.ok()) << render(model.error(), locs);
    BuildFailure failure;
    auto lowered = lower(*model, target, {.dynamic = true, .threads = 1}, failure);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message << "\n" << text;
    ASSERT_FALSE(lowered->unit.program.symbols.empty());
    for (const bool has_small_sizes : {true, false}) {
      auto source = cuda::emit_program(lowered->unit.program, target, has_small_sizes);
      ASSERT_TRUE(source.ok()) << source.error().message << "\n" << text;
      EXPECT_TRUE(has_small_sizes || !source->assumes_small_sizes);
      has_large = has_large || source->assumes_small_sizes;
      auto code = cuda::compile_cuda(source->text, target.isa, cuda::CodeKind::ptx);
      ASSERT_TRUE(code.ok()) << code.error().message << "\n" << source->text;
    }
  }
  EXPECT_TRUE(has_large);
}

INSTANTIATE_TEST_SUITE_P(Rows, CudaExample, testing::ValuesIn(lowerable_examples()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace lathe
