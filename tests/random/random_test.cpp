// Random graphs of a fixed seed. kScale is 1 every day, more in the heavy test.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"
#include "tests/random/generator.h"
#include "tests/random/propose.h"
#include "tests/random/run_case.h"
#include "tests/random/square.h"
#include "tests/random/symbolize.h"
#include "tests/random/workers.h"

namespace lathe::random_graphs {
namespace {

constexpr uint64_t kScale = RANDOM_GRAPHS_SCALE;
constexpr uint64_t kSeed = kScale == 1 ? 11 : 12;

std::string command(uint64_t index, const Machine& machine) {
  return fmt::format(
      "bazel run //tests/random:random_graphs -- --seed {} --first {} --count 1 --machine '{}' "
      "--keep /tmp/kept",
      kSeed, index, machine.name());
}

using JudgeCase = std::function<Verdict(const Case&, const Machine&, Coverage&)>;

// Graph i runs on machine i modulo their number.
Coverage expect_agreement(uint64_t count, std::vector<Machine> machines, const JudgeCase& judge) {
  std::erase_if(machines, [](const Machine& machine) { return !check_machine(machine).ok(); });
  EXPECT_FALSE(machines.empty());
  if (machines.empty()) return {};
  std::map<Verdict::Kind, uint64_t> counts;
  const Coverage coverage = work(
      {.count = count, .jobs = 2},
      [&](uint64_t index, Coverage& seen) {
        return judge(generate(kSeed, index), machines[index % machines.size()], seen);
      },
      [&](uint64_t index, const Verdict& verdict) {
        ++counts[verdict.kind];
        EXPECT_FALSE(verdict.is_failure())
            << kind_name(verdict.kind) << ": " << verdict.text << "\n"
            << command(index, machines[index % machines.size()]);
        return true;
      });
  // An oracle that says nothing finds nothing.
  EXPECT_GE(counts[Verdict::Kind::agrees] + counts[Verdict::Kind::left_out], count * 97 / 100);
  EXPECT_GE(counts[Verdict::Kind::agrees], count / 2);
  return coverage;
}

Coverage expect_right(uint64_t count, std::vector<Machine> machines) {
  return expect_agreement(count, std::move(machines),
                          [](const Case& test, const Machine& machine, Coverage& seen) {
                            return run_case(test, machine, &seen);
                          });
}

TEST(RandomGraphs, AreRightOnTheCpuAndReachEveryPass) {
  const Coverage coverage =
      expect_right(800 * kScale, {{"cpu", "avx2"}, {"cpu", "avx512"}, {"cpu", "avx512_bf16"}});
  const std::set<std::string> of_symbols = {"collect_guards", "fold_positions", "merge_symbols",
                                            "pad_shapes", "specialize_shapes"};
  const std::set<std::string> of_libraries = {"convolution_to_matmul", "fold_scale",
                                              "merge_matmuls",         "sink_permutes",
                                              "space_to_depth",        "widen_groups"};
  for (const PassDef& pass : builtin_passes())
    EXPECT_TRUE(coverage.count("pass " + pass.name) != 0 || of_symbols.count(pass.name) != 0 ||
                of_libraries.count(pass.name) != 0)
        << "no graph gives " << pass.name << " anything to do";
}

TEST(RandomGraphs, AreRightOnWasm) {
  expect_right(200 * kScale, {{"wasm", "relaxed"}, {"wasm", "simd128"}});
}

// One program for some sizes. Nothing is said of graphs in which no size can be a symbol.
Verdict run_at_sizes(const Case& test, const Machine& machine, Coverage& seen) {
  const auto symbolic = symbolize(test, kSeed);
  return symbolic ? run_case(*symbolic, machine, &seen) : Verdict();
}

TEST(RandomGraphs, AreRightAtSizesOfTheirSymbols) {
  expect_agreement(400 * kScale, {{"cpu", "avx2"}, {"interp", "sm_90"}, {"cpu", "avx512"}},
                   run_at_sizes);
  expect_agreement(100 * kScale, {{"wasm", "relaxed"}, {"wasm", "simd128"}}, run_at_sizes);
}

int64_t count_of(const Coverage& coverage, const std::string& what) {
  const auto found = coverage.find(what);
  return found == coverage.end() ? 0 : found->second;
}

// Numbers for symbols before lowering or after it: the same result.
Verdict commute(const Case& test, const Machine& machine, Coverage& seen) {
  const auto symbolic = symbolize(test, kSeed);
  return symbolic ? run_square(*symbolic, machine, &seen) : Verdict();
}

TEST(RandomGraphs, CommuteWithNumbersForTheirSymbols) {
  const Coverage coverage = expect_agreement(
      200 * kScale, {{"interp", "avx2"}, {"interp", "avx512"}, {"interp", "sm_90"}}, commute);
  EXPECT_GT(count_of(coverage, "square same bits"), 100);
  EXPECT_LT(50 * count_of(coverage, "square other bits"), count_of(coverage, "square same bits"));
}

// A program with a guard less may even crash, which takes its counts along; a guard that is
// stricter than its op is with numbers is counted.
bool is_noticed(const Verdict& verdict) {
  return verdict.kind == Verdict::Kind::wrong || verdict.kind == Verdict::Kind::crashes;
}

// Where a guard is left out, something must go wrong at the sizes that it alone forbids.
TEST(RandomGraphs, NeedTheirGuards) {
  const Coverage coverage = work(
      {.count = 300 * kScale, .jobs = 2},
      [](uint64_t index, Coverage& seen) {
        const auto symbolic = symbolize(generate(kSeed, index), kSeed);
        return symbolic ? run_without_guards(*symbolic, {"interp", "avx2"}, &seen) : Verdict();
      },
      [](uint64_t, const Verdict& verdict) {
        EXPECT_TRUE(!verdict.is_failure() || is_noticed(verdict)) << verdict.text;
        return true;
      });
  EXPECT_GT(count_of(coverage, "guard needed"), 10);
  EXPECT_LT(10 * count_of(coverage, "guard spare"), count_of(coverage, "guard needed"));
}

TEST(RandomGraphs, AreRightAsLoweredForAGpu) { expect_right(300 * kScale, {{"interp", "sm_90"}}); }

TEST(RandomGraphs, HaveTheSameBitsEverywhereWhenStrict) {
  const Status has_node = check_machine({"wasm", "simd128"});
  if (!has_node.ok()) GTEST_SKIP() << has_node.error().message;
  expect_agreement(100 * kScale, {{"cpu", "avx2"}},
                   [](const Case& test, const Machine& machine, Coverage&) {
                     return compare_bits(test, {machine, {"wasm", "simd128"}});
                   });
}

TEST(Generator, MakesEveryRow) {
  std::set<std::string> missing;
  for (const OpDef& op : builtin_registry().rows()) missing.insert(op.name);
  for (uint64_t index = 0; index < 4000 && missing.size() > rows_left_out().size(); ++index)
    for (const Case test = generate(kSeed, index); const auto& node : test.module.main().nodes)
      missing.erase(node->op->name);
  for (const auto& [row, why] : rows_left_out())
    EXPECT_EQ(missing.erase(row), 1u) << row << " is made, and listed as left out: " << why;
  for (const std::string& row : missing) ADD_FAILURE() << "no graph has " << row;
}

TEST(Generator, MakesTheSameGraphAgain) {
  EXPECT_EQ(print(generate(3, 7)), print(generate(3, 7)));
  EXPECT_NE(print(generate(3, 7)), print(generate(3, 8)));
}

}  // namespace
}  // namespace lathe::random_graphs
