// Graphs in the caller's memory: lathe_load_memory and lathe_refusals.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/api/lathe.h"

namespace {

// y = relu(x) @ w, and what else the text holds.
std::string graph(const std::string& first_call = "torch.ops.aten.relu.default") {
  const auto tensor = [](const char* name) {
    return std::string(R"({"as_tensor":{"name":")") + name + R"("}})";
  };
  const std::string meta =
      R"({"dtype":7,"sizes":[{"as_int":2},{"as_int":2}],"requires_grad":false,)"
      R"("device":{"type":"cpu","index":null},"strides":[{"as_int":2},{"as_int":1}],)"
      R"("storage_offset":{"as_int":0},"layout":7})";
  const auto call = [](const std::string& target, const std::string& inputs,
                       const std::string& output) {
    return R"({"target":")" + target + R"(","inputs":[)" + inputs + R"(],"outputs":[)" + output +
           R"(],"metadata":{}})";
  };
  const auto given = [](const char* name, const std::string& arg) {
    return std::string(R"({"name":")") + name + R"(","arg":)" + arg + "}";
  };
  return R"({"graph_module":{"graph":{"inputs":[],"outputs":[)" + tensor("y") + R"(],"nodes":[)" +
         call(first_call, given("self", tensor("x")), tensor("r")) + "," +
         call("torch.ops.aten.mm.default",
              given("self", tensor("r")) + "," + given("mat2", tensor("w")), tensor("y")) +
         R"(],"tensor_values":{"x":)" + meta + R"(,"w":)" + meta + R"(,"r":)" + meta + R"(,"y":)" +
         meta +
         R"(},"sym_int_values":{},"sym_bool_values":{}},"signature":{"input_specs":[)"
         R"({"parameter":{"arg":{"name":"w"},"parameter_name":"weight"}},{"user_input":{"arg":)" +
         tensor("x") + R"(}}],"output_specs":[{"user_output":{"arg":)" + tensor("y") +
         R"(}}]},"module_call_graph":[]},"opset_version":{"aten":10},"range_constraints":{},)"
         R"("schema_version":{"major":8,"minor":17}})";
}

struct Free {
  void operator()(lathe_model* model) const { lathe_free(model); }
};
using Model = std::unique_ptr<lathe_model, Free>;

constexpr int64_t kShape[] = {2, 2};
constexpr int64_t kRows[] = {2, 1};
constexpr int64_t kColumns[] = {1, 2};
constexpr float kData[] = {1, 2, 3, 4};

lathe_weight weight(const int64_t* strides = kRows) {
  return {"weight", kData, LATHE_F32, 2, kShape, strides};
}

Model load(const std::string& text, const std::vector<lathe_weight>& weights,
           const char* options = R"({"threads": 1})") {
  return Model(lathe_load_memory(text.data(), text.size(), weights.data(),
                                 static_cast<int32_t>(weights.size()), options));
}

std::string error(const Model& model) {
  const char* text = lathe_error(model.get());
  return text == nullptr ? "" : text;
}

std::vector<float> run(const Model& model) {
  const float x[] = {1, -1, 2, 1};
  std::vector<float> y(4);
  const void* inputs[] = {x};
  void* outputs[] = {y.data()};
  EXPECT_EQ(lathe_run(model.get(), inputs, outputs), LATHE_OK) << error(model);
  return y;
}

TEST(GraphInMemory, RunsWithTheCallersWeights) {
  Model model;
  {
    const std::string text = graph();  // gone before the run
    model = load(text, {weight()});
  }
  ASSERT_EQ(error(model), "");
  EXPECT_EQ(run(model), (std::vector<float>{1, 2, 5, 8}));
}

TEST(GraphInMemory, TakesWeightsInAnyOrderOfMemory) {
  const Model model = load(graph(), {weight(kColumns)});
  ASSERT_EQ(error(model), "");
  EXPECT_EQ(run(model), (std::vector<float>{1, 3, 4, 10}));
}

TEST(GraphInMemory, NeedsNoWeightsWithASeed) {
  const Model model = load(graph(), {}, R"({"threads": 1, "weights": "random:1"})");
  EXPECT_EQ(error(model), "");
}

TEST(GraphInMemory, SaysWhichWeightIsMissingOrNotItsOwn) {
  EXPECT_NE(error(load(graph(), {})).find("weight 'weight' is not given"), std::string::npos);
  lathe_weight other = weight();
  other.name = "wieght";
  EXPECT_NE(error(load(graph(), {other})).find("no weight 'wieght'"), std::string::npos);
  other = weight();
  other.dtype = LATHE_I32;
  EXPECT_NE(error(load(graph(), {other})).find("'weight' is f32[2, 2] in the graph, got i32[2, 2]"),
            std::string::npos);
}

TEST(GraphInMemory, RefusesWhatIsNoWeight) {
  lathe_weight wrong[] = {weight(), weight(), weight(), weight(), weight(), weight()};
  const int64_t far[] = {INT64_MAX, 1};
  const int64_t negative[] = {2, -1};
  wrong[0].name = nullptr;
  wrong[1].dtype = static_cast<lathe_dtype>(99);
  wrong[2].rank = -1;
  wrong[3].strides = negative;
  wrong[4].data = nullptr;
  wrong[5].strides = far;
  for (const lathe_weight& one : wrong) {
    const Model model = load(graph(), {one});
    EXPECT_EQ(lathe_last_status(model.get()), LATHE_WRONG_INPUT);
    EXPECT_NE(error(model), "");
  }
}

TEST(GraphInMemory, RefusesWhatIsNoGraph) {
  for (const std::string text : {"", "{", "[]", "PK\3\4"}) {
    const Model model = load(text, {});
    EXPECT_EQ(lathe_last_status(model.get()), LATHE_WRONG_INPUT) << text;
    EXPECT_STREQ(lathe_refusals(model.get()), "[]");
  }
  const Model model(lathe_load_memory(nullptr, 0, nullptr, 0, nullptr));
  EXPECT_EQ(lathe_last_status(model.get()), LATHE_WRONG_INPUT);
  EXPECT_STREQ(lathe_refusals(nullptr), "[]");
}

TEST(GraphInMemory, NamesTheCallsThatItRefuses) {
  const Model model = load(graph("torch.ops.mine.special.default"), {weight()});
  EXPECT_EQ(lathe_last_status(model.get()), LATHE_WRONG_INPUT);
  EXPECT_STREQ(lathe_refusals(model.get()),
               R"([{"code":"unsupported-op","node":"r",)"
               R"("reason":"Lathe has no op for 'mine.special.default'",)"
               R"("target":"mine.special.default"}])");
}

TEST(GraphInMemory, NamesACallWhoseArgumentsDoNotDo) {
  const Model model = load(graph("torch.ops.aten.t.default"), {weight()});
  ASSERT_EQ(error(model), "");  // a square: its transpose has the type in the file
  std::string text = graph();
  text.replace(text.find("aten.mm.default"), 15, "aten.mv.default");
  EXPECT_NE(std::string(lathe_refusals(load(text, {weight()}).get())).find(R"("node":"y")"),
            std::string::npos);
}

}  // namespace
