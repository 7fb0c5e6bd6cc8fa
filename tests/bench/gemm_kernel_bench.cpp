// GFLOP/s of register-tile kernels against the peak of fused multiply-adds, measured in turn with
// them, because the clock moves. Not a test: run it by hand.
//   gemm_kernel_bench [avx512|avx2] [--asm]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "backends/cpu/jit.h"
#include "backends/cpu/memory.h"
#include "ir/loop/pool.h"
#include "tests/backends/gemm_kernel.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Independent multiply-adds in 12 registers: what the machine can do at best.
loop::Kernel make_peak_kernel(int lanes, int64_t steps) {
  using namespace loop;
  Kernel kernel;
  kernel.name = "peak";
  kernel.pool = std::make_shared<Pool>();
  Pool& pool = *kernel.pool;
  constexpr int kChains = 12;
  BufferRef in = kernel.add_buffer({"in", DType::f32, 64});
  BufferRef out = kernel.add_buffer({"out", DType::f32, 16 * kChains, Space::global, true});
  RegArray acc = kernel.add_regs({"acc", DType::f32, lanes, {kChains}});
  auto var = [&](const char* name) {
    return kernel.add_var({name, VarKind::loop, DType::i64, 1, 0, steps});
  };
  auto each = [&](auto make) {
    Var i = var("i");
    return Stmt{For{i, pool.integer(0), pool.integer(kChains), 1, LoopKind::unroll, {make(i)}}};
  };
  Expr x = pool.load(in, pool.integer(0), DType::f32, lanes);
  auto read = [&](Var i) { return pool.reg(acc, {pool.var(i)}, DType::f32, lanes); };
  Stmt init = each([&](Var i) { return Stmt{SetReg{acc, {pool.var(i)}, x}}; });
  Stmt step = each([&](Var i) { return Stmt{SetReg{acc, {pool.var(i)}, fma(read(i), x, x)}}; });
  Stmt save =
      each([&](Var i) { return Stmt{Store{out, pool.var(i) * pool.integer(16), read(i), {}}}; });
  Block body = {{DeclareRegs{acc}}, init};
  body.push_back(
      {For{var("k"), pool.integer(0), pool.integer(steps), 1, LoopKind::serial, {step}}});
  body.push_back(save);
  kernel.body.push_back(
      {For{var("p"), pool.integer(0), pool.integer(1), 1, LoopKind::parallel, body}});
  return kernel;
}

struct Case {
  const char* name;
  GemmShape shape;
};

std::vector<Case> cases(bool is_wide) {
  if (is_wide)
    return {{"14x2", {128, 768, 768, 14, 2, 16}}, {"14x2", {128, 3072, 768, 14, 2, 16}},
            {"14x2", {197, 768, 768, 14, 2, 16}}, {"9x3", {128, 768, 768, 9, 3, 16}},
            {"6x4", {128, 768, 768, 6, 4, 16}},   {"28x1", {112, 768, 768, 28, 1, 16}}};
  return {{"6x2", {128, 768, 768, 6, 2, 8}}, {"4x3", {128, 768, 768, 4, 3, 8}}};
}

// Counts of loads from and stores to the stack in the text of the kernel.
int count_spills(const std::string& assembly) {
  int count = 0;
  for (size_t at = 0; (at = assembly.find("byte Spill", at)) != std::string::npos; ++at) ++count;
  return count;
}

int run_case(const Case& c, cpu::Isa isa, cpu::ObjectCache& cache, bool shows_asm) {
  constexpr int64_t kPeakSteps = 100'000;
  loop::Kernel gemm = make_gemm_kernel(c.shape);
  loop::Kernel peak = make_peak_kernel(c.shape.lanes, kPeakSteps);
  Clock::time_point start = Clock::now();
  auto jit = cpu::Jit::compile({{&gemm, {isa, true}}}, 1, cache);
  double compile_ms = 1e3 * seconds(start);
  auto peak_jit = cpu::Jit::compile({{&peak, {isa, true}}}, 1, cache);
  auto text = cpu::generate_code({{&gemm, {isa, true}}}, cpu::CodeForm::assembly);
  if (!jit.ok() || !peak_jit.ok() || !text.ok()) {
    fmt::print(stderr, "{}\n", (!jit.ok() ? jit.error() : text.error()).message);
    return 1;
  }
  if (shows_asm) fmt::print("{}\n", *text);
  const GemmShape& s = c.shape;
  auto floats = [](int64_t count) {
    auto block = cpu::Block::allocate(static_cast<size_t>(count) * 4, "a matrix");
    return block.ok() ? std::move(*block) : cpu::Block();
  };
  cpu::Block a = floats(s.m * s.k), b = floats(s.n * s.k + s.k * 64), bias = floats(s.n),
             out = floats(s.m * s.n), one = floats(256);
  for (cpu::Block* block : {&a, &b, &bias, &one})
    for (size_t i = 0; i < block->size() / 4; ++i)
      reinterpret_cast<float*>(block->address())[i] = 1e-3f * static_cast<float>(i % 13);
  void* gemm_args[] = {a.address(), b.address(), bias.address(), out.address()};
  void* peak_args[] = {one.address(), out.address()};
  double best = 1e9, best_peak = 1e9;
  for (int round = 0; round < 200; ++round) {
    start = Clock::now();
    (*jit)->functions()[0](gemm_args, 0, s.n / (s.vectors * s.lanes), nullptr);
    best = std::min(best, seconds(start));
    start = Clock::now();
    (*peak_jit)->functions()[0](peak_args, 0, 1, nullptr);
    best_peak = std::min(best_peak, seconds(start));
  }
  double rate = 2e-9 * static_cast<double>(s.m * s.n * s.k) / best;
  double peak_rate = 2e-9 * 12 * s.lanes * kPeakSteps / best_peak;
  fmt::print(
      "{:5} {}x{}x{}: {:6.1f} GFLOP/s, {:5.1f} % of {:.1f}; {} spills; compiled in {:.1f} ms\n",
      c.name, s.m, s.n, s.k, rate, 100 * rate / peak_rate, peak_rate, count_spills(*text),
      compile_ms);
  return 0;
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  bool shows_asm = argc > 2 && std::strcmp(argv[2], "--asm") == 0;
  auto isa = lathe::cpu::select_isa(argc > 1 ? argv[1] : "");
  if (!isa.ok()) {
    fmt::print(stderr, "{}\n", isa.error().message);
    return 1;
  }
  lathe::cpu::ObjectCache cache;
  for (const lathe::Case& c : lathe::cases(*isa == lathe::cpu::Isa::avx512))
    if (lathe::run_case(c, *isa, cache, shows_asm) != 0) return 1;
  return 0;
}
