// House tests 7 and 8, over every .lathe file and every graph of the zoo: what prints parses back
// to the same, and after the default pipeline every node and launch still knows where it came from.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "frontend/import/import.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/op/all_ops.h"
#include "ir/target/target.h"
#include "passes/pipeline/pipeline.h"
#include "tests/tools/file_case.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

const ImportTable& import_table() {
  static const Result<ImportTable> table = ImportTable::create(builtin_registry());
  return *table;
}

std::string case_name(const fs::path& path) {
  std::string name = path.filename().string();
  name = name.substr(0, name.find(".json"));
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

std::vector<fs::path> files(const std::vector<std::string>& folders, const std::string& suffix) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == suffix) found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void expect_round_trip(const Module& module) {
  const std::string printed = print(module);
  LocTable locs;
  const Result<Module> again = parse(printed, builtin_registry(), "printed", &locs);
  ASSERT_TRUE(again.ok()) << render(again.error(), locs);
  EXPECT_EQ(structural_hash(*again), structural_hash(module)) << printed;
  EXPECT_EQ(print(*again), printed);
}

TEST(RoundTrip, EveryLatheFile) {
  size_t num_parsed = 0;
  for (const fs::path& file : files({"tests/passes", "tests/diagnostics"}, ".lathe")) {
    std::ifstream stream(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const auto cases = file_test::read_cases(text, file.string());
    ASSERT_TRUE(cases.ok()) << cases.error().message;
    for (const file_test::FileCase& test : *cases) {
      const Result<Module> module = parse(test.input, builtin_registry(), file.string());
      if (!module) continue;  // a wrong program, on purpose
      SCOPED_TRACE(file.string());
      expect_round_trip(*module);
      ++num_parsed;
    }
  }
  EXPECT_GT(num_parsed, 0u);
}

class ZooTest : public testing::TestWithParam<fs::path> {
 protected:
  Result<ImportedModel> import(LocTable& locs) {
    ImportOptions options;
    options.allow_missing_weights = true;
    return import_model(GetParam().string(), import_table(), builtin_registry(), options, &locs);
  }
};

void expect_known_locations(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    EXPECT_FALSE(node->loc.is_unknown()) << print(*node);
    for (const auto& body : node->bodies) expect_known_locations(*body);
  }
}

void run(Unit& unit, const std::string& text) {
  const Result<Pipeline> pipeline = parse_pipeline(text);
  ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
  PassContext context{builtin_registry(), *find_target("avx512")};
  const Result<PipelineReport> report = run_pipeline(unit, *pipeline, {}, context);
  ASSERT_TRUE(report.ok()) << render(report.error(), unit.module.locs);
}

TEST_P(ZooTest, PrintsAndParses) {
  LocTable locs;
  const Result<ImportedModel> model = import(locs);
  ASSERT_TRUE(model.ok()) << render(model.error(), locs);
  expect_round_trip(model->module);
}

TEST_P(ZooTest, KeepsLocations) {
  LocTable locs;
  Result<ImportedModel> model = import(locs);
  ASSERT_TRUE(model.ok()) << render(model.error(), locs);
  expect_known_locations(model->module.main());
  Unit unit{std::move(model->module), {}};
  ASSERT_NO_FATAL_FAILURE(run(unit, "default,-lower_to_loops,-plan_memory"));
  expect_known_locations(unit.module.main());
  ASSERT_NO_FATAL_FAILURE(run(unit, "lower_to_loops,plan_memory"));
  EXPECT_FALSE(unit.program.steps.empty());
  for (const Launch& launch : unit.program.steps) {
    EXPECT_FALSE(launch.origins.empty()) << launch.label;
    for (const Loc origin : launch.origins) EXPECT_FALSE(origin.is_unknown()) << launch.label;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooTest, testing::ValuesIn(files({"tests/zoo"}, ".gz")),
                         [](const auto& info) { return case_name(info.param); });

}  // namespace
}  // namespace lathe
