// The mathematical functions on the GPU of this machine against float64, and what
// tests/math/ulp.txt says of them. Needs no LLVM, so that it travels alone; on_gpu.sh runs it.
//
//   math_on_gpu ulp.txt OUT
//
// writes the table with what was measured to OUT.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "backends/cuda/device/backend.h"
#include "frontend/driver/build.h"
#include "tests/math/functions.h"
#include "tests/math/table.h"

namespace lathe {
namespace {

constexpr uint64_t kStride = 256;
constexpr uint32_t kNeighbours = 1024;

// What disagrees with the table.
Result<std::string> check(const std::string& path, const std::string& out) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  LATHE_TRY(UlpTable table, parse_ulp_table(text.str()));
  LATHE_DO(check_cuda());
  LATHE_TRY(auto backend, make_cuda_backend(""));
  Model model;
  LATHE_TRY(model.module, math_module(kSweepSize));
  BuildFailure failure;
  LATHE_TRY(Build built, build(model, *backend, {.threads = 1}, failure));
  std::vector<SweptTarget> targets = {
      {"cuda", [&](auto in, auto results) { return built.executable->run(in, results); }, {}}};
  LATHE_DO(sweep(Operands(kStride, kNeighbours, table.operands()), targets, false));
  const std::string wrong = disagreements(table, "cuda", targets[0].errors);
  replace_column(table, "cuda", targets[0].errors);
  std::ofstream(out) << print(table);
  return wrong;
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  if (argc != 3) return fmt::print("usage: math_on_gpu TABLE OUT\n"), 2;
  auto wrong = lathe::check(argv[1], argv[2]);
  if (!wrong.ok()) return fmt::print("{}\n", wrong.error().message), 1;
  fmt::print("{}{}\n", *wrong, wrong->empty() ? "the table is true" : "the table is not true");
  return wrong->empty() ? 0 : 1;
}
