// Every mathematical function on every target against float64: the worst errors are those that the
// table states, no larger and no smaller.
//
//   ulp_test ulp.txt [STRIDE [NEIGHBOURS]]
//
// takes every STRIDE-th float of the line and as many neighbours of each point where formulas
// change. BLESS=1 writes the table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "backends/interp/run_program.h"
#include "backends/wasm/node/backend.h"
#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "tests/math/functions.h"
#include "tests/math/table.h"

namespace lathe {
namespace {

std::string table_path;
uint64_t stride = 1 << 14;
uint32_t neighbours = 8;
// The evaluator takes a microsecond where a kernel takes a nanosecond.
constexpr uint64_t kInterpretedStrides = 32;

// Models stay where builds refer to them.
class Targets {
 public:
  Status add(const std::string& name, const std::string& isa, Numerics numerics) {
    LATHE_TRY(auto backend, make_backend(name, isa));
    models_.push_back(std::make_unique<Model>());
    LATHE_TRY(models_.back()->module, math_module(kSweepSize));
    BuildFailure failure;
    auto built = std::make_shared<Build>();
    const CompileRequest request = {.threads = 1, .numerics = numerics};
    LATHE_TRY(*built, build(*models_.back(), *backend, request, failure));
    auto run = [built](auto in, auto out) { return built->executable->run(in, out); };
    swept.push_back({isa, run, {}});
    backends_.push_back(std::move(backend));
    return Ok{};
  }
  Status add_interpreter(Numerics numerics) {
    LATHE_TRY(auto backend, make_backend("cpu", "avx2"));
    Model model;
    LATHE_TRY(model.module, math_module(kSweepSize));
    BuildFailure failure;
    auto lowered = std::make_shared<Lowered>();
    const CompileRequest request = {.threads = 1, .numerics = numerics};
    LATHE_TRY(*lowered, lower(model, backend->target(), request, failure));
    auto run = [lowered](auto inputs, auto outputs) {
      return run_program_interpreted(lowered->unit.program, {}, inputs, outputs);
    };
    swept.push_back({"interp", run, {}});
    return Ok{};
  }

  std::vector<SweptTarget> swept;

 private:
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<std::unique_ptr<Backend>> backends_;
};

UlpTable table;

void expect_column(const std::string& column, const std::vector<WorstError>& errors) {
  if (std::getenv("BLESS")) {
    replace_column(table, column, errors);
    std::ofstream(table_path) << print(table);
    return;
  }
  EXPECT_EQ(disagreements(table, column, errors), "");
}

Operands operands(uint64_t strides = 1) {
  return Operands(stride * strides, strides == 1 ? neighbours : 1, table.operands());
}

struct Machine {
  const char* target;
  const char* isa;
};

constexpr Machine kMachines[] = {
    {"cpu", "avx2"}, {"cpu", "avx512"}, {"wasm", "relaxed"}, {"wasm", "simd128"}};

Status check_machine(const Machine& machine) {
  LATHE_DO(make_backend(machine.target, machine.isa));
  return machine.target == std::string("wasm") ? check_wasm(machine.isa) : Status(Ok{});
}

class MathFunctions : public testing::TestWithParam<Machine> {};

TEST_P(MathFunctions, HaveTheStatedErrors) {
  const auto [target, isa] = GetParam();
  const Status is_there = check_machine(GetParam());
  if (!is_there.ok()) GTEST_SKIP() << is_there.error().message;
  Targets targets;
  const Status added = targets.add(target, isa, Numerics::standard);
  ASSERT_TRUE(added.ok()) << added.error().message;
  const Status swept = sweep(operands(), targets.swept, false);
  ASSERT_TRUE(swept.ok()) << swept.error().message;
  expect_column(isa, targets.swept[0].errors);
}

INSTANTIATE_TEST_SUITE_P(Machines, MathFunctions,
                         testing::ValuesIn(kMachines),
                         [](const auto& test) { return std::string(test.param.isa); });

TEST(MathFunctionsOfTheEvaluator, HaveTheStatedErrors) {
  Targets targets;
  const Status added = targets.add_interpreter(Numerics::standard);
  ASSERT_TRUE(added.ok()) << added.error().message;
  const Status swept = sweep(operands(kInterpretedStrides), targets.swept, false);
  ASSERT_TRUE(swept.ok()) << swept.error().message;
  expect_column("interp", targets.swept[0].errors);
}

TEST(StrictMathFunctions, HaveTheStatedErrors) {
  Targets targets;
  const Status added = targets.add("cpu", "avx2", Numerics::strict);
  ASSERT_TRUE(added.ok()) << added.error().message;
  const Status swept = sweep(operands(), targets.swept, false);
  ASSERT_TRUE(swept.ok()) << swept.error().message;
  expect_column("strict", targets.swept[0].errors);
}

TEST(StrictMathFunctions, GiveTheSameBitsOnEveryTarget) {
  Targets targets;
  const Status evaluator = targets.add_interpreter(Numerics::strict);
  ASSERT_TRUE(evaluator.ok()) << evaluator.error().message;
  for (const Machine& machine : kMachines) {
    if (!check_machine(machine).ok()) continue;
    const Status added = targets.add(machine.target, machine.isa, Numerics::strict);
    ASSERT_TRUE(added.ok()) << added.error().message;
  }
  ASSERT_GE(targets.swept.size(), 2u);
  const Status swept = sweep(operands(kInterpretedStrides), targets.swept, true);
  EXPECT_TRUE(swept.ok()) << swept.error().message;
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return fmt::print("usage: ulp_test TABLE [STRIDE [NEIGHBOURS]]\n"), 2;
  lathe::table_path = argv[1];
  if (argc > 2) lathe::stride = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) lathe::neighbours = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
  std::stringstream text;
  text << std::ifstream(lathe::table_path).rdbuf();
  auto table = lathe::parse_ulp_table(text.str());
  if (!table.ok()) return fmt::print("{}\n", table.error().message), 1;
  lathe::table = *std::move(table);
  return RUN_ALL_TESTS();
}
