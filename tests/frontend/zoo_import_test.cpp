// The zoo as graphs: what must import does, with locations, and quickly.
#include <chrono>

#include "ir/graph/verify.h"
#include "tests/frontend/importing.h"

namespace lathe {
namespace {

class ZooImport : public ::testing::TestWithParam<const char*> {};

TEST_P(ZooImport, BothForms) {
  for (const char* form : {"aten", "core"}) {
    const std::string path = fmt::format("tests/zoo/{}.{}.json.gz", GetParam(), form);
    ImportOptions options;
    options.allow_missing_weights = true;
    Imported imported = import_path(path, options);
    ASSERT_EQ(imported.error, "");
    ImportedModel& model = *imported.model;
    Status status = verify(model.module, model.module.main(), Form::imported);
    EXPECT_TRUE(status.ok()) << render(status.error(), model.module.locs);
    EXPECT_GE(model.module.main().nodes.size(), model.num_fx_nodes / 2);
    for (const auto& node : model.module.main().nodes) {
      const LocTable& locs = model.module.locs;
      Loc origin = locs.origin(node->loc);
      ASSERT_FALSE(origin.is_unknown()) << node->name;
      EXPECT_GE(locs[origin].frame, 0) << node->name;
    }
    EXPECT_EQ(model.signature.in_spec.num_leaves(), model.signature.inputs.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ZooImport,
                         ::testing::Values("lerp", "ffnn", "resnet18", "resnet50", "bert_base",
                                           "gpt2", "unet", "vit_b_16"),
                         [](const auto& test) { return std::string(test.param); });

TEST(ZooImport, WithoutWeightsTheyAreListed) {
  Imported imported = import_path("tests/zoo/ffnn.aten.json.gz");
  EXPECT_EQ(
      imported.error,
      "tests/zoo/ffnn.aten.json.gz: error[missing-weight]: 6 weights of this model are not in "
      "the file, which is a bare graph; plausible ones can be made with random:SEED\n"
      "  net.0.weight\n  net.0.bias\n  net.2.weight\n  net.2.bias\n  net.4.weight\n"
      "  net.4.bias\n");
}

}  // namespace
}  // namespace lathe
