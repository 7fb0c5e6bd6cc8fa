// Building, editing and verifying graphs.
#include <gtest/gtest.h>

#include "ir/graph/builder.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/support/diag_codes.h"
#include "tests/core/sample_ops.h"

namespace lathe {
namespace {

class GraphTest : public testing::Test {
 protected:
  GraphTest() { x_ = builder_.param({DType::f32, {4}}, "x"); }

  Graph& graph() { return module_.main(); }
  std::string verify_error(Form form = Form::imported) {
    const Status status = verify(module_, graph(), form);
    return status.ok() ? "" : status.error().code + ": " + status.error().message;
  }
  std::string error() const { return builder_.error().code + ": " + builder_.error().message; }

  Module module_ = make_module();
  Builder builder_{module_.main(), sample_ops(), Loc::unknown()};
  Value x_;

 private:
  static Module make_module() {
    Module module;
    module.graphs.push_back(std::make_unique<Graph>());
    return module;
  }
};

TEST_F(GraphTest, NamesAreUnique) {
  EXPECT_EQ(builder_.call("relu", {x_}).node->name, "relu");
  EXPECT_EQ(builder_.call("relu", {x_}).node->name, "relu_1");
  EXPECT_EQ(builder_.create(*sample_ops().find("relu"), {x_}, {}, {}, "a.b")->name, "a_b");
  EXPECT_EQ(builder_.create(*sample_ops().find("relu"), {x_}, {}, {}, "x")->name, "x_1");
  EXPECT_EQ(verify_error(), "");
}

TEST_F(GraphTest, InsertsInOrder) {
  const Value last = builder_.call("relu", {x_});
  builder_.set_insertion(0);
  const Value first = builder_.call("relu", {x_});
  const Value second = builder_.call("relu", {first});
  EXPECT_EQ(graph().nodes[0].get(), first.node);
  EXPECT_EQ(graph().nodes[1].get(), second.node);
  EXPECT_EQ(graph().nodes[2].get(), last.node);
}

TEST_F(GraphTest, ConvertsAttributes) {
  const Value sum = builder_.call("add", {x_, x_}, {{"alpha", int64_t{2}}});
  EXPECT_EQ(sum.node->float_attr("alpha"), 2);
  const Value view = builder_.call("view", {x_}, {{"shape", std::vector<int64_t>{2, 2}}});
  EXPECT_EQ(view.node->dims_attr("shape"), (std::vector<Dim>{2, 2}));
  EXPECT_EQ(view.node->ints_attr("shape"), (std::vector<int64_t>{2, 2}));
  EXPECT_FALSE(builder_.failed());
}

TEST_F(GraphTest, KeepsTheFirstError) {
  EXPECT_FALSE(builder_.call("add", {x_}));
  EXPECT_FALSE(builder_.call("nothing", {x_}));
  EXPECT_EQ(error(), "operand-count: 'add' needs its operand 'other'");
  EXPECT_TRUE(graph().nodes.empty());
}

TEST_F(GraphTest, RefusesWrongAttributes) {
  builder_.call("add", {x_, x_}, {{"alpha", std::string("two")}});
  EXPECT_EQ(error(), "attribute: attribute 'alpha' of 'add' must be a number, got \"two\"");
}

TEST_F(GraphTest, InPlaceKeepsTheShapeOfItsOperand) {
  const Value wide = builder_.call("constant", {},
                                   {{"value", std::vector<double>{1}},
                                    {"dtype", DType::f32},
                                    {"shape", std::vector<int64_t>{2, 4}}});
  builder_.create(*sample_ops().find("add"), {x_, wide}, {}, {}, "", true);
  EXPECT_EQ(error(),
            "shape-mismatch: 'add_' cannot write a result of shape [2, 4] over one of shape [4]");
}

TEST_F(GraphTest, ReplacesUsesInOneSweep) {
  const Value a = builder_.call("relu", {x_});
  const Value b = builder_.call("relu", {a});
  const Value c = builder_.call("relu", {b});
  graph().outputs = {c, a};
  graph().replace_uses({{c, b}, {b, a}, {a, x_}});
  EXPECT_EQ(graph().outputs, (std::vector<Value>{x_, x_}));
  EXPECT_EQ(b.node->operands[0], x_);
}

TEST_F(GraphTest, ErasesWhatNothingUses) {
  const Value a = builder_.call("relu", {x_});
  const Value b = builder_.call("relu", {a});
  builder_.call("relu", {b});
  builder_.call_all("check", {a});
  EXPECT_TRUE(graph().erase_dead());
  EXPECT_EQ(graph().nodes.size(), 2u);  // the check and what it reads
  EXPECT_FALSE(graph().erase_dead());
}

TEST_F(GraphTest, ClonesDeeply) {
  graph().outputs = {builder_.call("relu", {x_})};
  const auto copy = graph().clone();
  EXPECT_EQ(print(*copy), print(graph()));
  EXPECT_EQ(structural_hash(*copy), structural_hash(graph()));
  EXPECT_NE(copy->outputs[0].node, graph().outputs[0].node);
  EXPECT_EQ(copy->outputs[0].node->operands[0].node, copy->params[0].get());
}

TEST_F(GraphTest, SubstitutesSymbols) {
  const Dim s0 = Dim::symbol("s0");
  builder_.call("view", {x_}, {{"shape", std::vector<Dim>{s0 * 2}}});
  graph().substitute({{"s0", Dim(2)}});
  EXPECT_EQ(print(*graph().nodes[0]), "%view = view(%x) {shape = [4]} : f32[4]");
}

TEST_F(GraphTest, ListsUses) {
  const Value a = builder_.call("add", {x_, x_});
  const auto uses = graph().uses();
  EXPECT_EQ(uses.at(x_), (std::vector<std::pair<Node*, int>>{{a.node, 0}, {a.node, 1}}));
  EXPECT_EQ(uses.count(a), 0u);
}

TEST_F(GraphTest, VerifyFindsEveryFault) {
  const Value a = builder_.call("relu", {x_});
  Value b = builder_.call("relu", {a});
  graph().outputs = {b};
  EXPECT_EQ(verify_error(Form::fused), "");

  std::swap(graph().nodes[0], graph().nodes[1]);
  EXPECT_EQ(
      verify_error(),
      "undefined-value: operand 'self' of 'relu_1' is not defined above its use in its graph");
  std::swap(graph().nodes[0], graph().nodes[1]);

  b.node->name = "relu";
  EXPECT_EQ(verify_error(), "redefined-value: two nodes are named 'relu'");
  b.node->name = "no name";
  EXPECT_EQ(verify_error(), "bad-form: 'no name' is no name for a node");
  b.node->name = "b";

  b.node->types[0].shape = {5};
  EXPECT_EQ(verify_error(), "type-mismatch: 'b' must have the type f32[4]");
  b.node->types[0].shape = {4};

  b.node->operands.push_back(a);
  EXPECT_EQ(verify_error(), "operand-count: 'b' has 2 operands, its row takes 1");
  b.node->operands = {Value{}};
  EXPECT_EQ(verify_error(), "undefined-value: operand 'self' of 'b' is missing");
  b.node->operands = {a};

  b.node->attrs.emplace_back();
  EXPECT_EQ(verify_error(), "attribute: 'b' has 1 attributes, its row has 0");
  b.node->attrs.clear();

  b.node->in_place = true;
  EXPECT_EQ(verify_error(), "");
  EXPECT_EQ(verify_error(Form::functional),
            "bad-form: 'relu_' is in place, which the form 'functional' does not have");
  b.node->in_place = false;

  b.node->loc.id = 1000;
  EXPECT_EQ(verify_error(), "bad-form: node 'b' has a location of another table");
  b.node->loc = Loc::unknown();

  graph().outputs = {Value{}};
  EXPECT_EQ(verify_error(), "undefined-value: an output of the function is missing");
  graph().outputs = {b};

  graph().mutations = {{"y", true, b}};
  EXPECT_EQ(verify_error(), "undefined-value: no input is named 'y', which a mutation writes");
}

TEST_F(GraphTest, VerifyComparesWeights) {
  const Value w = builder_.call(
      "constant", {},
      {{"name", std::string("w")}, {"dtype", DType::f32}, {"shape", std::vector<int64_t>{4}}});
  graph().outputs = {w};
  EXPECT_EQ(verify_error(), "");
  module_.weights["w"].data.type = {DType::f32, {5}};
  EXPECT_EQ(verify_error(),
            "type-mismatch: weight 'w' is f32[5], but constant 'constant' says f32[4]");
}

}  // namespace
}  // namespace lathe
