// Pipelines over every graph of the zoo, in both forms: what must be found is found, what must
// vanish has vanished, every location is known, and layers that repeat are lowered like each by
// itself. How long it takes: tests/bench/pass_bench.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "frontend/import/import.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/program/program.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

// Every graph that lies in the zoo.
std::vector<std::string> models() {
  std::vector<std::string> names;
  const std::string end = ".aten.json.gz";
  for (const auto& entry : std::filesystem::directory_iterator("tests/zoo")) {
    const std::string name = entry.path().filename();
    if (name.size() > end.size() && name.substr(name.size() - end.size()) == end)
      names.push_back(name.substr(0, name.size() - end.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// How often an op occurs at the end, by model; both forms alike.
struct Expectation {
  const char* model;
  const char* op;
  int64_t count;
};
constexpr Expectation kExpected[] = {
    {"bert_base", "attention", 12},
    {"bert_base", "layer_norm", 25},
    {"bert_base", "gelu", 12},
    {"bert_base", "dropout", 0},
    {"bert_base", "arange", 0},
    {"bert_base", "clone", 0},
    {"gpt2", "attention", 12},
    {"gpt2", "gelu", 12},
    {"gpt2", "arange", 0},
    {"gpt2", "cumsum", 0},
    {"gpt2", "le", 0},
    {"vit_b_16", "attention", 12},
    {"vit_b_16", "softmax", 0},
    {"resnet18", "batch_norm", 0},
    {"resnet18", "convolution", 20},
    {"resnet18", "mul", 0},
    {"resnet50", "batch_norm", 0},
    {"resnet50", "convolution", 53},
    {"unet", "silu", 10},
    {"unet", "sigmoid", 0},
};

const ImportTable& import_table() {
  static const Result<ImportTable> table = ImportTable::create(builtin_registry());
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : table.error().message);
  return *table;
}

// The weights' own arithmetic is not counted: it runs once, when they are bound.
std::map<std::string, int64_t> count_ops(const Graph& graph) {
  std::map<std::string, int64_t> counts;
  std::map<const Node*, bool> is_constant;
  for (const auto& node : graph.nodes) {
    bool constant = node->op->traits.op_class == OpClass::source || !node->operands.empty();
    for (Value operand : node->operands)
      constant = constant && (!operand || is_constant[operand.node]);
    is_constant[node.get()] = constant;
    bool is_made_of_weights = constant && !node->operands.empty();
    if (!is_made_of_weights) ++counts[node->op->name];
  }
  return counts;
}

Result<Module> load(const std::string& name) {
  ImportOptions options;
  options.allow_missing_weights = true;
  LATHE_TRY(auto imported, import_model("tests/zoo/" + name + ".json.gz", import_table(),
                                        builtin_registry(), options));
  return std::move(imported.module);
}

class Zoo : public testing::TestWithParam<std::string> {};

TEST_P(Zoo, RunsTheGraphPipeline) {
  const std::string& name = GetParam();
  Result<Module> loaded = load(name);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  Unit unit{*std::move(loaded), {}};
  Result<Pipeline> pipeline = parse_pipeline("graph");
  ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
  PassContext context{builtin_registry(), *find_target("avx2")};
  RunOptions options;
  options.check_honesty = true;
  std::string refusals;
  options.on_step = [&](const PassRecord& record) {
    for (const Refusal& refusal : record.refusals)
      refusals += record.pass + ": " + refusal.message + "\n";
    return true;
  };
  auto report = run_pipeline(unit, *pipeline, options, context);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->form, Form::core);
  for (const auto& node : unit.module.main().nodes)
    ASSERT_FALSE(node->loc.is_unknown()) << print(*node);
  std::map<std::string, int64_t> counts = count_ops(unit.module.main());
  for (const Expectation& expected : kExpected) {
    if (name.substr(0, name.find('.')) != expected.model) continue;
    EXPECT_EQ(counts[expected.op], expected.count) << expected.op << "\n" << refusals;
  }
}

TEST_P(Zoo, LowersRegionsThatAreAlikeAsEachByItself) {
  std::string programs[2];
  for (const bool is_once : {false, true}) {
    Result<Module> loaded = load(GetParam());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    Unit unit{*std::move(loaded), {}};
    Result<Pipeline> pipeline =
        parse_pipeline(std::string("graph,choose_kernels,lower_to_loops{repeats=") +
                       (is_once ? "once" : "each") + "},plan_memory");
    ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
    PassContext context{builtin_registry(), *find_target("avx2")};
    auto report = run_pipeline(unit, *pipeline, {}, context);
    ASSERT_TRUE(report.ok()) << report.error().message;
    programs[is_once] = print(unit.program);
  }
  EXPECT_EQ(programs[0], programs[1]);
}

TEST(ZooExpectations, NameModelsAndOpsThatExist) {
  const std::vector<std::string> all = models();
  for (const Expectation& expected : kExpected) {
    EXPECT_EQ(std::count(all.begin(), all.end(), expected.model), 1) << expected.model;
    EXPECT_NE(builtin_registry().find(expected.op), nullptr) << expected.op;
  }
}

// Of one form: the other meets the same lowering.
class ZooLowering : public testing::TestWithParam<std::string> {};

// Libraries take other ways through lowering than loops do, and narrow vectors other templates. For
// the CPU the house test lowers every graph.
TEST_P(ZooLowering, LowersForTargetsOfEveryKind) {
  const std::string name = GetParam() + ".aten";
  ImportOptions import_options;
  import_options.allow_missing_weights = true;
  auto imported = import_model("tests/zoo/" + name + ".json.gz", import_table(), builtin_registry(),
                               import_options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  Result<Pipeline> pipeline = parse_pipeline("default");
  ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
  for (const char* isa : {"sm_90", "simd128"}) {
    Unit unit{clone(imported->module), {}};
    PassContext context{builtin_registry(), *find_target(isa)};
    auto report = run_pipeline(unit, *pipeline, {}, context);
    ASSERT_TRUE(report.ok()) << isa << ": " << report.error().message;
    const Status valid = verify(unit.program);
    EXPECT_TRUE(valid.ok()) << isa << ": " << valid.error().message;
    EXPECT_FALSE(unit.program.steps.empty()) << isa;
  }
}

std::vector<std::string> all_graphs_of_the_zoo() {
  std::vector<std::string> names;
  for (const std::string& model : models())
    for (const char* form : {"aten", "core"}) names.push_back(model + "." + form);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, Zoo, testing::ValuesIn(all_graphs_of_the_zoo()),
                         [](const auto& test) {
                           std::string name = test.param;
                           name[name.find('.')] = '_';
                           return name;
                         });

INSTANTIATE_TEST_SUITE_P(Models, ZooLowering, testing::ValuesIn(models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lathe
