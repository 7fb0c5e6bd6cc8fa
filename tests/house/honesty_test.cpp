// House test 6: over every case of every .lathe file, every pass says truly whether it changed
// anything, leaves the form it promises, and does the same when it runs again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"
#include "ir/target/target.h"
#include "passes/pipeline/pipeline.h"
#include "tests/tools/file_case.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

struct Input {
  std::string place;  // "tests/passes/cse.lathe:16"
  Module module;
};

// Every case that parses; those of tests/diagnostics mostly do not, on purpose.
std::vector<Input> read_inputs() {
  std::vector<fs::path> files;
  for (const char* folder : {"tests/passes", "tests/diagnostics"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".lathe") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> inputs;
  for (const fs::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto cases = file_test::read_cases(text, file.string());
    if (!cases) continue;  // the file's own test says so
    for (const file_test::FileCase& test : *cases) {
      Result<Module> module = parse(test.input, builtin_registry(), file.string());
      if (!module) continue;
      inputs.push_back({fmt::format("{}:{}", file.string(), test.line), *std::move(module)});
    }
  }
  return inputs;
}

const std::vector<Input>& inputs() {
  static const std::vector<Input> table = read_inputs();
  return table;
}

class HonestyTest : public testing::TestWithParam<const PassDef*> {};

// The steps a pass needs before it: on programs, what lowers to them.
std::string steps_for(const PassDef& pass) {
  return pass.needs < Form::loops ? pass.name
                                  : "functionalize,decompose,lower_to_loops," + pass.name;
}

// The text of what the pass made of a copy of the module; "" when the input is not for it.
std::string run_on(const Input& input, const std::string& steps) {
  const Result<Pipeline> pipeline = parse_pipeline(steps);
  EXPECT_TRUE(pipeline.ok()) << pipeline.error().message;
  if (!pipeline) return "";
  Unit unit{clone(input.module), {}};
  PassContext context{builtin_registry(), *find_target("avx512")};
  RunOptions options;
  options.check_honesty = true;
  const Result<PipelineReport> report = run_pipeline(unit, *pipeline, options, context);
  if (!report) {
    // Refusing an input is honest; being wrong is not.
    EXPECT_FALSE(report.error().is_internal)
        << input.place << ": " << steps << ": " << report.error().message;
    return "";
  }
  return report->form < Form::loops ? print(unit.module) : print(unit.program);
}

TEST_P(HonestyTest, HoldsOnEveryFile) {
  size_t num_run = 0;
  for (const Input& input : inputs()) {
    const std::string steps = steps_for(*GetParam());
    const std::string once = run_on(input, steps);
    EXPECT_EQ(run_on(input, steps), once) << input.place << ": another result the second time";
    num_run += !once.empty();
  }
  EXPECT_GT(num_run, 0u) << "no .lathe file is an input of this pass";
}

std::vector<const PassDef*> all_of_them() {
  std::vector<const PassDef*> passes;
  for (const PassDef& pass : builtin_passes()) passes.push_back(&pass);
  return passes;
}

INSTANTIATE_TEST_SUITE_P(Passes, HonestyTest, testing::ValuesIn(all_of_them()),
                         [](const auto& info) { return info.param->name; });

}  // namespace
}  // namespace lathe
