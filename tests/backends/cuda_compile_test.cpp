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

INSTANTIATE_TEST_SUITE_P(Rows, CudaExample, testing::ValuesIn(lowerable_examples()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace lathe
