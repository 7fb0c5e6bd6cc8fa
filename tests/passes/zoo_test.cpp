// The graph pipeline over every graph of the zoo, in both forms: what must be found is found, what
// must vanish has vanished, every location is known, and it is fast.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "fmt/format.h"
#include "frontend/import/import.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/program/program.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

constexpr const char* kModels[] = {
    "albert",        "beit_base",  "bert_base",     "clip_text",          "clip_vision",
    "convnext_tiny", "deit_tiny",  "distilbert",    "efficientnet_b0",    "ffnn",
    "ghostnet",      "gpt2",       "lerp",          "llama_160m",         "lstm",
    "mixer_b16",     "mnasnet1_0", "mobilenet_v2",  "mobilenet_v3_large", "repvgg_a2",
    "resnet18",      "resnet50",   "squeezenet1_1", "t5_encoder",         "unet",
    "vgg16",         "vit_b_16",   "vit_hf",
};

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

class Zoo : public testing::TestWithParam<std::string> {};

TEST_P(Zoo, RunsTheGraphPipeline) {
  const std::string& name = GetParam();
  ImportOptions import_options;
  import_options.allow_missing_weights = true;
  auto imported = import_model("tests/zoo/" + name + ".json.gz", import_table(), builtin_registry(),
                               import_options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  Unit unit{std::move(imported->module), {}};
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
  double milliseconds = 0;
  for (const PassRecord& record : report->passes) milliseconds += record.milliseconds;
  if (std::getenv("LATHE_ZOO_VERBOSE") != nullptr) {
    fmt::print("{}\n{}{}all passes: {:.1f} ms\n", name, to_table(*report), refusals, milliseconds);
    if (std::string(std::getenv("LATHE_ZOO_VERBOSE")) == "text")
      fmt::print("{}\n", print(unit.module.main()));
  }
  EXPECT_LT(milliseconds, 1000) << "a pass is not linear";
  for (const auto& node : unit.module.main().nodes)
    ASSERT_FALSE(node->loc.is_unknown()) << print(*node);
  std::map<std::string, int64_t> counts = count_ops(unit.module.main());
  for (const Expectation& expected : kExpected) {
    if (name.substr(0, name.find('.')) != expected.model) continue;
    EXPECT_EQ(counts[expected.op], expected.count) << expected.op << "\n" << refusals;
  }
}

// Libraries take other ways through lowering than loops do.
TEST_P(Zoo, LowersForTargetsOfEveryKind) {
  const std::string& name = GetParam();
  if (name.find(".aten") == std::string::npos) return;  // the other form meets the same lowering
  ImportOptions import_options;
  import_options.allow_missing_weights = true;
  auto imported = import_model("tests/zoo/" + name + ".json.gz", import_table(), builtin_registry(),
                               import_options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  Result<Pipeline> pipeline = parse_pipeline("default");
  ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
  for (const char* isa : {"avx512", "sm_90", "simd128"}) {
    Unit unit{clone(imported->module), {}};
    PassContext context{builtin_registry(), *find_target(isa)};
    auto report = run_pipeline(unit, *pipeline, {}, context);
    ASSERT_TRUE(report.ok()) << isa << ": " << report.error().message;
    const Status valid = verify(unit.program);
    EXPECT_TRUE(valid.ok()) << isa << ": " << valid.error().message;
  }
}

std::vector<std::string> all_graphs_of_the_zoo() {
  std::vector<std::string> names;
  for (const char* model : kModels)
    for (const char* form : {"aten", "core"}) names.push_back(std::string(model) + "." + form);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, Zoo, testing::ValuesIn(all_graphs_of_the_zoo()),
                         [](const auto& test) {
                           std::string name = test.param;
                           name[name.find('.')] = '_';
                           return name;
                         });

}  // namespace
}  // namespace lathe
