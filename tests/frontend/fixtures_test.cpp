// Exported models give what PyTorch gave: outputs, mutated buffers and mutated inputs.
#include <cmath>
#include <filesystem>

#include "frontend/npz/npz.h"
#include "ir/graph/eval.h"
#include "ir/target/target.h"
#include "passes/pipeline/pipeline.h"
#include "tests/frontend/importing.h"

namespace lathe {
namespace {

Tensor dense(const NpyArray& array) {
  TensorType type{array.dtype, {}};
  for (int64_t size : array.shape) type.shape.emplace_back(size);
  TensorData data{type, row_major_strides(array.shape), array.bytes.data, array.bytes.size,
                  array.bytes.owner};
  auto tensor = read_tensor(data);
  EXPECT_TRUE(tensor.ok());
  return *tensor;
}

std::map<std::string, Tensor> read_arrays(const std::string& path) {
  std::map<std::string, Tensor> arrays;
  if (!std::filesystem::exists(path)) return arrays;
  auto npz = read_npz(path);
  EXPECT_TRUE(npz.ok()) << path;
  for (const NamedArray& named : *npz) arrays.emplace(named.name, dense(named.array));
  return arrays;
}

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(actual.dtype, expected.dtype) << name;
  ASSERT_EQ(actual.shape, expected.shape) << name;
  const bool is_short = is_half(expected.dtype);
  const double tolerance = is_short ? 1e-2 : 1e-4;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = actual.get(i), b = expected.get(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    ASSERT_NEAR(a, b, tolerance * (1 + std::fabs(b))) << name << " element " << i;
  }
}

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fixtures"))
    if (entry.path().extension() == ".pt2") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Result<EvalResult> run(Unit& unit, const std::map<std::string, Tensor>& inputs) {
  LATHE_TRY(Pipeline pipeline, parse_pipeline("functionalize"));
  PassContext context{builtin_registry(), *find_target("avx2")};
  LATHE_TRY(PipelineReport report, run_pipeline(unit, pipeline, {}, context));
  std::vector<Tensor> list;
  for (size_t i = 0; i < inputs.size(); ++i) list.push_back(inputs.at(std::to_string(i)));
  EvalOptions options;
  options.symbols = unit.module.hints;
  return evaluate(unit.module, unit.module.main(), list, options);
}

class Fixture : public ::testing::TestWithParam<std::string> {};

TEST_P(Fixture, AgreesWithPyTorch) {
  const std::string stem = "tests/fixtures/" + GetParam();
  Imported imported = import_path(stem + ".pt2");
  ASSERT_EQ(imported.error, "");
  const Signature signature = imported.model->signature;
  Unit unit{std::move(imported.model->module), {}};
  auto result = run(unit, read_arrays(stem + ".inputs.npz"));
  ASSERT_TRUE(result.ok()) << render(result.error(), unit.module.locs);
  size_t count = 0;
  const std::map<std::string, Tensor> outputs = read_arrays(stem + ".outputs.npz");
  for (const OutputLeaf& leaf : signature.outputs) {
    if (leaf.kind != OutputLeaf::Kind::tensor) continue;
    const std::string name = std::to_string(count++);
    ASSERT_TRUE(outputs.count(name));
    expect_close(result->outputs[static_cast<size_t>(leaf.output)], outputs.at(name), name);
  }
  EXPECT_EQ(count, outputs.size());
  std::map<std::string, const Tensor*> mutated;
  const std::vector<Mutation>& mutations = unit.module.main().mutations;
  ASSERT_EQ(result->mutated.size(), mutations.size());
  for (size_t i = 0; i < mutations.size(); ++i) mutated[mutations[i].target] = &result->mutated[i];
  for (const auto& [name, expected] : read_arrays(stem + ".mutated.npz")) {
    ASSERT_TRUE(mutated.count(name)) << name;
    expect_close(*mutated.at(name), expected, name);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fixture, ::testing::ValuesIn(fixture_names()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
});

TEST(Signature, NestingIsKept) {
  Imported imported = import_path("tests/fixtures/nested.pt2");
  ASSERT_EQ(imported.error, "");
  const Signature& signature = imported.model->signature;
  ASSERT_EQ(signature.in_spec.children.size(), 2u);
  EXPECT_EQ(signature.in_spec.children[1].keys, std::vector<std::string>{"point"});
  const TreeSpec& out = signature.out_spec;
  EXPECT_EQ(out.kind, TreeSpec::Kind::dict);
  EXPECT_EQ(out.keys, (std::vector<std::string>{"sum", "point", "rest", "3", "text", "half"}));
  EXPECT_EQ(out.children[1].kind, TreeSpec::Kind::named_tuple);
  EXPECT_EQ(out.children[1].keys, (std::vector<std::string>{"left", "right"}));
  ASSERT_EQ(signature.outputs.size(), 10u);
  EXPECT_EQ(signature.outputs[3].kind, OutputLeaf::Kind::constant);  // None
  EXPECT_EQ(std::get<int64_t>(signature.outputs[4].constant), 7);
  EXPECT_EQ(std::get<std::string>(signature.outputs[8].constant), "done");
}

TEST(Signature, BakedInArgumentsAndFreeInts) {
  Imported arguments = import_path("tests/fixtures/arguments.pt2");
  ASSERT_EQ(arguments.error, "");
  const std::vector<InputLeaf>& inputs = arguments.model->signature.inputs;
  ASSERT_EQ(inputs.size(), 6u);
  EXPECT_EQ(inputs[1].name, "times");
  EXPECT_EQ(std::get<int64_t>(inputs[1].constant), 3);
  EXPECT_EQ(std::get<double>(inputs[2].constant), 0.5);
  EXPECT_EQ(std::get<std::string>(inputs[3].constant), "shifted");
  EXPECT_EQ(std::get<bool>(inputs[4].constant), true);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(inputs[5].constant));

  Imported free_int = import_path("tests/fixtures/int_argument.pt2");
  ASSERT_EQ(free_int.error, "");
  const Signature& signature = free_int.model->signature;
  EXPECT_EQ(signature.inputs[1].kind, InputLeaf::Kind::size);
  EXPECT_EQ(signature.outputs[1].kind, OutputLeaf::Kind::size);
  EXPECT_EQ(signature.outputs[1].size, signature.inputs[1].size + Dim(1));
}

TEST(Symbols, DerivedRangesAreSolved) {
  Imported imported = import_path("tests/fixtures/derived_dims.pt2");
  ASSERT_EQ(imported.error, "");
  const Module& module = imported.model->module;
  const Shape& shape = module.graphs[0]->params[0]->types[0].shape;
  std::vector<std::string> names;
  shape[0].collect_symbols(names);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(shape[0], Dim(2) * Dim::symbol(names[0]));
  EXPECT_EQ(module.dims.at(names[0]), (DimRange{2, 32}));
  EXPECT_EQ(module.hints.at(names[0]), 4);
}

std::vector<std::string> spelled(const std::vector<Guard>& guards) {
  std::vector<std::string> texts;
  for (const Guard& guard : guards) texts.push_back(to_string(guard) + ": " + guard.cause);
  return texts;
}

TEST(Guards, OfTheExporterAreComparisonsOfSizes) {
  Imported imported = import_path("tests/fixtures/guarded.pt2");
  ASSERT_EQ(imported.error, "");
  const auto& params = imported.model->module.graphs[0]->params;
  const std::string x = params[0]->types[0].shape[0].str(), y = params[1]->types[0].shape[1].str();
  const std::vector<std::string> texts = spelled(imported.model->module.guards);
  EXPECT_NE(std::find(texts.begin(), texts.end(), x + " % 4 == 0: (L['x'].size()[0] % 4) == 0"),
            texts.end())
      << ::testing::PrintToString(texts);
  EXPECT_EQ(texts.size(), 2u) << ::testing::PrintToString(texts);
  EXPECT_NE(texts.back().find(y), std::string::npos);
  EXPECT_TRUE(imported.model->signature.unread_guards.empty());
}

// Those of derived sizes say what the sizes say already.
TEST(Guards, ThatRangesSettleAreNotKept) {
  Imported derived = import_path("tests/fixtures/derived_dims.pt2");
  ASSERT_EQ(derived.error, "");
  EXPECT_EQ(spelled(derived.model->module.guards), std::vector<std::string>{});
  Imported free_int = import_path("tests/fixtures/int_argument.pt2");
  ASSERT_EQ(free_int.error, "");
  const auto texts = spelled(free_int.model->module.guards);
  ASSERT_EQ(texts.size(), 2u) << ::testing::PrintToString(
      texts);  // an int that is not 1; a product
  EXPECT_NE(texts[0].find("!= 1: L['count'] != 1"), std::string::npos) << texts[0];
}

TEST(Weights, TiedOnesShareMemory) {
  Imported imported = import_path("tests/fixtures/tied_weights.pt2");
  ASSERT_EQ(imported.error, "");
  const auto& weights = imported.model->module.weights;
  EXPECT_EQ(weights.at("embed.weight").data.bytes, weights.at("head.weight").data.bytes);
  EXPECT_EQ(weights.at("tail").data.bytes, weights.at("row").data.bytes + 8 * sizeof(float));
}

}  // namespace
}  // namespace lathe
