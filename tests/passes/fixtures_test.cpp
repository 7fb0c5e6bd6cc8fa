// The graph pipeline on the exported fixtures, evaluated: what PyTorch returned for the same inputs
// comes out, with sizes as numbers and with sizes as symbols. Writes in place, mutated buffers and
// views of views are among the fixtures, in both forms.
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/import/import.h"
#include "frontend/npz/npz.h"
#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

// By stem; ".core" is the same model after run_decompositions.
constexpr const char* kFixtures[] = {
    "attention_block", "autocast",     "bert_tiny",       "computed_masks", "constants",
    "dataclasses",     "derived_dims", "dtypes",          "ffnn",           "ffnn_dynamic",
    "gpt_tiny",        "guarded",      "mutated_buffers", "mutated_inputs", "nested",
    "no_grad",         "resnet_tiny",  "tied_weights",    "unet_tiny",      "view_mutation",
    "vit_tiny",
};

std::vector<Tensor> read_tensors(const std::string& path) {
  std::vector<Tensor> tensors;
  auto arrays = read_npz(path);
  EXPECT_TRUE(arrays.ok()) << (arrays.ok() ? "" : arrays.error().message);
  if (!arrays.ok()) return tensors;
  for (NamedArray& named : *arrays) {
    const NpyArray& array = named.array;
    TensorData data;
    data.type = {array.dtype, Shape(array.shape.begin(), array.shape.end())};
    data.strides = row_major_strides(array.shape);
    data.bytes = array.bytes.data;
    data.num_bytes = array.bytes.size;
    auto tensor = read_tensor(data);
    EXPECT_TRUE(tensor.ok()) << path << ": " << named.name;
    if (tensor.ok()) tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

void expect_near(const Tensor& got, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.shape, wanted.shape) << what;
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    double x = got.get(i), y = wanted.get(i);
    bool is_near =
        x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= 1e-4 * (1 + std::fabs(y));
    ASSERT_TRUE(is_near) << what << ": element " << i << " is " << x << ", PyTorch's is " << y;
  }
}

// As graph, with masks of symbolic sizes.
constexpr const char* kSymbolic =
    "functionalize,collect_guards,drop_noops,fold_positions,recognize_structured,dce,decompose,"
    "fold_batch_norm,fold_constants,simplify,cse,dce";

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, GivesWhatPyTorchGave) {
  std::string stem = "tests/fixtures/" + GetParam();
  static const Result<ImportTable> table = ImportTable::create(builtin_registry());
  ASSERT_TRUE(table.ok()) << table.error().message;
  std::vector<Tensor> inputs = read_tensors(stem + ".inputs.npz");
  std::vector<Tensor> wanted = read_tensors(stem + ".outputs.npz");
  for (const char* text : {"graph", "graph,-specialize_shapes", kSymbolic}) {
    auto imported = import_model(stem + ".pt2", *table, builtin_registry());
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    Unit unit{std::move(imported->module), {}};
    Graph& graph = unit.module.main();
    ASSERT_EQ(graph.params.size(), inputs.size());
    ASSERT_EQ(graph.outputs.size(), wanted.size());
    auto pipeline = parse_pipeline(text);
    ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
    PassContext context{builtin_registry(), *find_target("avx2")};
    RunOptions options;
    options.check_honesty = true;
    auto report = run_pipeline(unit, *pipeline, options, context);
    ASSERT_TRUE(report.ok()) << text << ": " << report.error().message;
    auto result = evaluate(unit.module, graph, inputs);
    ASSERT_TRUE(result.ok()) << text << ": " << result.error().message << print(graph);
    for (size_t i = 0; i < wanted.size(); ++i)
      expect_near(result->outputs[i], wanted[i], GetParam() + " with " + text);
  }
}

std::vector<std::string> both_forms() {
  std::vector<std::string> names;
  for (const char* name : kFixtures) {
    names.push_back(name);
    bool is_only_captured =
        std::string_view("autocast dataclasses nested no_grad tied_weights").find(name) !=
        std::string_view::npos;
    if (!is_only_captured) names.push_back(std::string(name) + ".core");
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, Fixture, testing::ValuesIn(both_forms()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
});

class Masks : public testing::TestWithParam<std::string> {};

TEST_P(Masks, OfSymbolicSizesBecomeAFlagOrNothing) {
  const auto table = ImportTable::create(builtin_registry());
  auto imported = import_model("tests/fixtures/" + GetParam(), *table, builtin_registry());
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  Unit unit{std::move(imported->module), {}};
  PassContext context{builtin_registry(), *find_target("avx2")};
  const auto report = run_pipeline(unit, *parse_pipeline(kSymbolic), {}, context);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(unit.module.guards.empty()) << to_string(unit.module.guards.front());
  std::vector<bool> flags;
  for (const auto& node : unit.module.main().nodes) {
    if (node->op->name != "attention") continue;
    EXPECT_FALSE(node->operands[3]);
    flags.push_back(node->bool_attr("is_causal"));
  }
  EXPECT_EQ(flags, (std::vector<bool>{true, false}));
  const auto original = import_model("tests/fixtures/" + GetParam(), *table, builtin_registry());
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{1, 2}, {3, 2}, {2, 11}, {1, 32}}) {
    Tensor ids = Tensor::zeros(DType::i64, sizes);
    for (int64_t i = 0; i < ids.num_elements(); ++i) ids.set(i, static_cast<double>(i * 7 % 50));
    const auto wanted = evaluate(original->module, original->module.main(), {ids});
    const auto got = evaluate(unit.module, unit.module.main(), {ids});
    ASSERT_TRUE(wanted.ok() && got.ok());
    expect_near(got->outputs[0], wanted->outputs[0], GetParam());
  }
}
INSTANTIATE_TEST_SUITE_P(Models, Masks,
                         testing::Values("computed_masks.pt2", "computed_masks.core.pt2"));

}  // namespace
}  // namespace lathe
