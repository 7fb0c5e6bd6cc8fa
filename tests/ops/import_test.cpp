// Schemas, and calls of ATen operators as an exported graph has them.
#include "ir/op/import_call.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/text.h"
#include "ir/op/all_ops.h"

namespace lathe {
namespace {

TEST(Schema, ReadsTypesDefaultsAndAliases) {
  const auto schema = parse_schema(
      "max_pool2d.out_(Tensor(a!) self, int[2] kernel_size, int[2] padding=0, SymInt[]? size=None, "
      "Tensor?[] parts, *, ScalarType? dtype=4, float eps=1e-05, str mode=\"none\", bool b=True, "
      "Scalar s=-1, MemoryFormat f=contiguous_format) -> Tensor(a!)");
  ASSERT_TRUE(schema.ok()) << schema.error().message;
  EXPECT_EQ(schema->name, "max_pool2d.out_");
  EXPECT_TRUE(schema->is_in_place);
  EXPECT_EQ(schema->find("kernel_size")->list_size, 2);
  EXPECT_FALSE(schema->find("kernel_size")->default_value.has_value());
  EXPECT_EQ(*schema->find("padding")->default_value, (Attr{std::vector<int64_t>{0, 0}}));
  EXPECT_EQ(*schema->find("size")->default_value, Attr{});
  EXPECT_TRUE(schema->find("size")->is_optional && schema->find("size")->is_list);
  EXPECT_TRUE(schema->find("parts")->has_optional_elements);
  EXPECT_FALSE(schema->find("parts")->is_optional);
  EXPECT_EQ(*schema->find("dtype")->default_value, Attr{DType::i64});
  EXPECT_TRUE(schema->find("dtype")->is_keyword_only);
  EXPECT_EQ(*schema->find("eps")->default_value, Attr{1e-5});
  EXPECT_EQ(*schema->find("mode")->default_value, Attr{std::string("none")});
  EXPECT_EQ(*schema->find("s")->default_value, Attr{int64_t{-1}});
}

TEST(Schema, ReadsReturns) {
  const auto count = [](std::string_view text) {
    const auto schema = parse_schema(text);
    return schema.ok() ? static_cast<int>(schema->returns.size()) : -1;
  };
  EXPECT_EQ(count("f(Tensor a) -> ()"), 0);
  EXPECT_EQ(count("f(Tensor(a -> *) self) -> Tensor(a)[]"), 1);
  EXPECT_EQ(count("f() -> (Tensor values, Tensor indices)"), 2);
}

TEST(Schema, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "f", "f(", "f(Tensor) -> Tensor", "f(Sensor a) -> Tensor", "f(int a=) -> Tensor",
        "f(int[0] a) -> Tensor", "f() -> Tensor x", "f(int a=99999999999999999999) -> Tensor"}) {
    EXPECT_FALSE(parse_schema(text).ok()) << text;
  }
}

class ImportTest : public testing::Test {
 protected:
  void SetUp() override {
    auto created = ImportTable::create(builtin_registry());
    ASSERT_TRUE(created.ok()) << created.error().message;
    table = std::make_unique<ImportTable>(*std::move(created));
  }

  Value tensor(DType dtype, std::vector<int64_t> shape) {
    return builder.param({dtype, Shape(shape.begin(), shape.end())}, "x");
  }

  // The printed node that computes the first result, or the error.
  std::string import(std::string target, std::vector<std::pair<std::string, CallArg>> args,
                     std::vector<TensorType> expected = {}) {
    auto results = import_call(builder, *table,
                               {.target = std::move(target),
                                .args = std::move(args),
                                .expected = std::move(expected),
                                .name = "y"});
    if (!results.ok()) return results.error().code + ": " + results.error().message;
    return results->empty() ? "" : print(*results->front().node);
  }

  Graph graph;
  Builder builder{graph, builtin_registry(), Loc::unknown()};
  std::unique_ptr<ImportTable> table;
};

TEST_F(ImportTest, FillsDefaultsAndRepeatsSingleSizes) {
  const Value x = tensor(DType::f32, {1, 2, 8, 8});
  EXPECT_EQ(import("torch.ops.aten.max_pool2d.default",
                   {{"self", x}, {"kernel_size", Attr{std::vector<int64_t>{2}}}}),
            "%y = max_pool2d(%x) {kernel_size = [2, 2], padding = [0, 0], dilation = [1, 1]} : "
            "f32[1, 2, 4, 4]");
}

// Whatever a file gives in a tensor's place, each op imports or says what is wrong.
TEST_F(ImportTest, EveryOpSurvivesWhatIsNoTensor) {
  const Value x = tensor(DType::f32, {2, 3}), scalar = tensor(DType::f32, {});
  const CallArg choices[] = {Value{},
                             Attr{},
                             Attr{2.0},
                             Attr{int64_t{-1}},
                             Attr{true},
                             Attr{std::string("x")},
                             Attr{std::vector<int64_t>{}},
                             Attr{std::vector<int64_t>{1, -2}},
                             std::vector<Value>{},
                             std::vector<Value>{x, Value{}},
                             x,
                             scalar};
  size_t num_tried = 0;
  for (const std::string& target : table->targets()) {
    const Schema& schema = table->find(target).entry->schema;
    // For each argument every choice, beside tensors or what stands for one of another kind.
    for (const SchemaArg& changed : schema.args) {
      for (const CallArg& choice : choices) {
        std::vector<std::pair<std::string, CallArg>> args;
        for (const SchemaArg& arg : schema.args) {
          const CallArg list = arg.is_list ? CallArg(std::vector<Value>{x, x}) : CallArg(x);
          const CallArg usual = arg.type == SchemaType::tensor ? list
                                : arg.is_list ? CallArg(Attr{std::vector<int64_t>{1, 1}})
                                              : CallArg(Attr{int64_t{1}});
          if (&arg == &changed)
            args.emplace_back(arg.name, choice);
          else if (!arg.default_value)
            args.emplace_back(arg.name, usual);
        }
        Graph own;
        Builder into(own, builtin_registry(), Loc::unknown());
        const auto results = import_call(into, *table, {.target = target, .args = args});
        if (!results.ok()) {
          EXPECT_FALSE(results.error().is_internal)
              << target << " " << changed.name << ": " << results.error().message;
        }
        ++num_tried;
      }
    }
  }
  EXPECT_GT(num_tried, 5000);
  EXPECT_EQ(import("aten.mm.default", {{"self", x}}),
            "bad-model: 'aten.mm.default' lacks its tensor argument 'other'");
  EXPECT_EQ(import("aten.matmul.default", {{"self", x}, {"other", Value{}}}),
            "bad-model: 'aten.matmul.default' lacks its tensor argument 'other'");
}

TEST_F(ImportTest, InPlaceTargetsAreTheFunctionalRow) {
  const Value x = tensor(DType::f16, {3});
  EXPECT_EQ(import("aten.add_.Tensor", {{"self", x}, {"other", Attr{1.5}}}),
            "%y = add_(%x, %constant) : f16[3]");
  EXPECT_EQ(
      import("aten.dropout_.default", {{"self", x}, {"p", Attr{0.5}}, {"train", Attr{false}}}),
      "%y_1 = dropout_(%x) : f16[3]");
}

TEST_F(ImportTest, WeakScalarsTakeTheTensorsCategory) {
  const Value i64 = tensor(DType::i64, {3}), f16 = tensor(DType::f16, {3});
  const Value rank0 = tensor(DType::f16, {});
  const auto result = [&](Value self, Attr other) {
    const auto values = import_call(
        builder, *table,
        {.target = "aten.mul.Tensor", .args = {{"self", self}, {"other", std::move(other)}}});
    EXPECT_TRUE(values.ok());
    const Node& node = *values->front().node;
    return std::pair(node.types[0].dtype, node.operands[1].type().dtype);
  };
  EXPECT_EQ(result(i64, int64_t{2}), std::pair(DType::i64, DType::i64));
  EXPECT_EQ(result(i64, 0.5), std::pair(DType::f32, DType::f32));
  EXPECT_EQ(result(f16, 0.1), std::pair(DType::f16, DType::f32));  // not rounded to f16
  EXPECT_EQ(result(rank0, 0.1), std::pair(DType::f16, DType::f16));
  EXPECT_EQ(result(i64, true), std::pair(DType::i64, DType::i64));
}

TEST_F(ImportTest, ResolvesMinusOne) {
  Value x = builder.param({DType::f32, {Dim::symbol("s0"), 12}}, "x");
  EXPECT_EQ(import("aten.view.default", {{"self", x}, {"size", Attr{std::vector<int64_t>{-1, 4}}}}),
            "%y = reshape(%x) {shape = [3*s0, 4]} : f32[3*s0, 4]");
}

TEST_F(ImportTest, UnusedStatisticsAreNull) {
  const Value x = tensor(DType::f32, {2, 4});
  const auto results = import_call(builder, *table,
                                   {.target = "aten.native_layer_norm.default",
                                    .args = {{"input", x},
                                             {"normalized_shape", Attr{std::vector<int64_t>{4}}},
                                             {"weight", Attr{}},
                                             {"bias", Attr{}},
                                             {"eps", Attr{1e-5}}}});
  ASSERT_TRUE(results.ok()) << results.error().message;
  ASSERT_EQ(results->size(), 3u);
  EXPECT_TRUE((*results)[0]);
  EXPECT_FALSE((*results)[1]);
}

// Graphs of PyTorch 2.11 say f32 of them.
TEST_F(ImportTest, CountsAreIntegersWhateverTheFileSays) {
  const TensorType line = {DType::f32, {Dim::symbol("u0")}}, whole = {DType::f32, {2, 3}};
  const auto results = import_call(builder, *table,
                                   {.target = "aten._unique2.default",
                                    .args = {{"self", tensor(DType::f32, {2, 3})},
                                             {"return_inverse", Attr{true}},
                                             {"return_counts", Attr{true}}},
                                    .expected = {line, whole, line}});
  ASSERT_TRUE(results.ok()) << results.error().message;
  EXPECT_EQ((*results)[1].type().dtype, DType::i64);
  EXPECT_EQ((*results)[2].type().dtype, DType::i64);
}

// Composites that are right on either kind of number know some arguments as real ones alone.
TEST_F(ImportTest, NoComplexNumberIsReadAsAReal) {
  const Value x = tensor(DType::f32, {2, 3, 2});
  builder.mark_complex(x);
  const CallArg dx = ComplexNumber{0, 2};
  EXPECT_EQ(import("aten.renorm.default", {{"self", x}, {"p", dx}, {"dim", Attr{int64_t{0}}}}),
            "unsupported: 'p' of 'aten.renorm.default' is a complex number, expected a real one");
  EXPECT_EQ(import("aten.trapezoid.dx", {{"y", x}, {"dx", dx}}).find("unsupported"),
            std::string::npos);
}

TEST_F(ImportTest, SaysWhatIsWrong) {
  const Value x = tensor(DType::f32, {2, 3});
  EXPECT_EQ(import("aten.frobnicate.default", {}),
            "unsupported-op: no op imports 'aten.frobnicate.default'");
  EXPECT_EQ(import("aten.relu.default", {}),
            "bad-model: 'aten.relu.default' lacks its tensor argument 'self'");
  EXPECT_EQ(import("aten.relu.default", {{"self", x}, {"alpha", Attr{2.0}}}),
            "bad-model: 'aten.relu.default' has no argument 'alpha'; its schema is of another "
            "version");
  EXPECT_EQ(import("aten.softmax.int", {{"self", x}, {"dim", Attr{0.5}}}),
            "bad-model: argument 'dim' of 'aten.softmax.int' is a number, which its schema does "
            "not allow");
  EXPECT_EQ(import("aten.relu.default", {{"self", x}}, {{DType::f16, {2, 3}}}),
            "type-mismatch: result 0 of 'aten.relu.default' is f16[2, 3] in the file, but its "
            "arguments make it f32[2, 3]");
}

}  // namespace
}  // namespace lathe
