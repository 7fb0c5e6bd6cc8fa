// The models that Lathe answers for, whole, as PyTorch exported them and decomposed to core ops.
#include <gtest/gtest.h>

#include "tests/models/model_case.h"

namespace lathe {
namespace {

class FullModel : public testing::TestWithParam<std::string> {};

TEST_P(FullModel, AgreesWithTheInterpreter) {
  // What core forms give a target is what the others do; WebAssembly takes minutes for them.
  bool is_core = GetParam().find(".core.") != std::string::npos;
  expect_model_runs(
      {.path = GetParam(), .weights = "random:0", .targets = is_core ? "cpu" : "cpu,wasm"});
}

std::vector<std::string> full_models() {
  std::vector<std::string> paths;
  for (const char* name :
       {"lerp", "ffnn", "resnet18", "resnet50", "bert_base", "gpt2", "unet", "vit_b_16"})
    for (const char* form : {"aten", "core"})
      paths.push_back(std::string("tests/zoo/") + name + "." + form + ".json.gz");
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Zoo, FullModel, testing::ValuesIn(full_models()),
                         [](const auto& file) { return test_name(file.param); });

// Those of the studies, whose shapes are as large as those of models.
class Graph : public testing::TestWithParam<std::string> {};

TEST_P(Graph, AgreesWithTheInterpreter) {
  expect_model_runs({.path = GetParam(), .weights = "random:0"});
}

INSTANTIATE_TEST_SUITE_P(Files, Graph,
                         testing::ValuesIn(files_with_ending("experiments/graphs", ".json.gz")),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace lathe
