// The comparison of kernel_case.h.
#include "tests/backends/kernel_case.h"

#include <gtest/gtest.h>

#include "ir/loop/pool.h"
#include "ir/loop/text.h"
#include "tests/backends/random_kernel.h"

namespace lathe {

Status evaluate_kernel(const loop::Kernel& kernel, Memories& memory) {
  std::vector<loop::Memory> views;
  for (auto& bytes : memory) views.push_back({bytes.data(), bytes.size()});
  return loop::evaluate(kernel, views);
}

std::string describe(const Diag& diag) { return diag.code + ": " + diag.message; }

void expect_kernel_runs(const loop::Kernel& kernel, const KernelRunner& run, uint64_t seed) {
  auto valid = loop::verify(kernel, true);
  ASSERT_TRUE(valid.ok()) << describe(valid.error()) << "\n" << loop::print(kernel);
  Memories expected = make_random_memory(kernel, seed), actual = expected;
  auto evaluated = evaluate_kernel(kernel, expected);
  ASSERT_TRUE(evaluated.ok()) << describe(evaluated.error()) << "\n" << loop::print(kernel);
  auto ran = run(kernel, actual);
  ASSERT_TRUE(ran.ok()) << describe(ran.error()) << "\n" << loop::print(kernel);
  size_t global = 0;
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.space != loop::Space::global) continue;
    int64_t at = first_difference(buffer.dtype, expected[global], actual[global]);
    ASSERT_EQ(at, -1) << "seed " << seed << ", " << dtype_name(buffer.dtype) << " buffer " << global
                      << "\n"
                      << loop::print(kernel);
    ++global;
  }
}

loop::Kernel make_map(int lanes, loop::Expr (*f)(loop::Expr)) {
  using namespace loop;
  Kernel kernel;
  kernel.name = "map";
  kernel.pool = std::make_shared<Pool>();
  Pool& pool = *kernel.pool;
  BufferRef x = kernel.add_buffer({"x", DType::f32, 4 * lanes});
  BufferRef y = kernel.add_buffer({"y", DType::f32, 4 * lanes, Space::global, true});
  Var i = kernel.add_var({"i", VarKind::loop, DType::i64, 1, 0, 3});
  Expr at = pool.var(i) * pool.integer(lanes);
  Store store{y, at, f(pool.load(x, at, DType::f32, lanes)), {}};
  kernel.body.push_back(
      {For{i, pool.integer(0), pool.integer(4), 1, LoopKind::parallel, {{store}}}});
  return kernel;
}

}  // namespace lathe
