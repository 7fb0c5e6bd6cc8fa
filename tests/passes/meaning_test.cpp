// Passes keep the meaning of graphs, in float64: of every case in the .lathe files beside this one,
// with random inputs and weights, and of random graphs with views, writes in place, constants and
// copies. What the latter mean is run here as eager does it: values are places in shared memory.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "fmt/format.h"
#include "ir/graph/builder.h"
#include "ir/graph/eval.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/hash.h"
#include "passes/pipeline/pipeline.h"
#include "tests/tools/file_case.h"

namespace lathe {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint64_t next() { return Hasher().add(seed_).add(++count_).value(); }
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }
  double unit() { return static_cast<double>(next() >> 11) / 9007199254740992.0; }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

// Grows a graph of f32 values by random ops; shapes stay small.
class GraphMaker {
 public:
  GraphMaker(Module& module, Random& random) : random_(random), module_(module) {
    module.graphs.push_back(std::make_unique<Graph>());
    Loc loc = module.locs.text("<random>", 1, 1);
    b_ = std::make_unique<Builder>(module.main(), builtin_registry(), loc);
    for (Shape shape : {Shape{2, 3, 4}, Shape{3, 4}, Shape{4}})
      values_.push_back(b_->param({DType::f32, shape}, "x"));
  }

  void grow(int count) {
    for (int i = 0; i < count && !b_->failed(); ++i) {
      Value made = step();
      if (made) values_.push_back(made);
    }
    Graph& graph = module_.main();
    for (int i = 0; i < 3; ++i) graph.outputs.push_back(pick());
    graph.outputs.push_back(values_.back());
  }

  const Builder& builder() const { return *b_; }

 private:
  Value pick() { return values_[random_.below(values_.size())]; }

  Value step() {
    switch (random_.below(10)) {
      case 0:
      case 1:
        return unary();
      case 2:
      case 3:
        return binary();
      case 4:
        return literal();
      case 5:
        return reduced();
      case 6:
        return written();
      case 7:
        return contracted();
      default:
        return viewed();
    }
  }

  Value unary() {
    static const char* const kOps[] = {"neg",  "abs",   "tanh",    "sigmoid",
                                       "relu", "clone", "dropout", "alias"};
    return b_->call(kOps[random_.below(8)], {pick()});
  }

  Value binary() {
    static const char* const kOps[] = {"add", "sub", "mul", "maximum"};
    Value a = pick(), c = pick();
    if (!broadcast(a.type().shape, c.type().shape)) return {};
    return b_->call(kOps[random_.below(4)], {a, c});
  }

  Value literal() {
    static const double kValues[] = {0, -0.0, 1, 0.5, 2};
    Value scalar = b_->scalar(kValues[random_.below(5)], DType::f32);
    return b_->call(random_.below(2) == 0 ? "add" : "mul", {pick(), scalar});
  }

  Value reduced() {
    Value x = pick();
    if (x.type().rank() == 0) return {};
    int64_t dim = static_cast<int64_t>(random_.below(static_cast<size_t>(x.type().rank())));
    if (random_.below(3) == 0) return b_->call("softmax", {x}, {{"dim", dim}});
    return b_->call(random_.below(2) == 0 ? "sum" : "mean", {x},
                    {{"dim", std::vector<int64_t>{dim}}, {"keepdim", random_.below(2) == 0}});
  }

  // An in-place op; on an expanded value eager refuses, so those are left out.
  Value written() {
    Value x = pick();
    if (has_repeats(x)) return {};
    const OpDef* op = builtin_registry().find(random_.below(2) == 0 ? "tanh" : "add");
    std::vector<Value> operands = {x};
    if (op->name == "add") operands.push_back(b_->scalar(0.25, DType::f32));
    Node* node = b_->create(*op, operands, {}, {}, {}, true);
    return node == nullptr ? Value() : node->result();
  }

  static bool has_repeats(Value value) {
    for (; value; value = value.node->operands.empty() ? Value() : value.node->operands[0])
      if (value.node->op->name == "expand") return true;
    return false;
  }

  Value contracted() {
    Value a = pick(), c = pick();
    if (a.type().rank() != 2 || c.type().rank() != 2) return {};
    if (a.type().shape[1] == c.type().shape[0]) return b_->call("matmul", {a, c});
    if (a.type().shape[1] != c.type().shape[1]) return {};
    return b_->call("matmul",
                    {a, b_->call("permute", {c}, {{"dims", std::vector<int64_t>{1, 0}}})});
  }

  Value viewed() {
    Value x = pick();
    const Shape& shape = x.type().shape;
    int64_t rank = x.type().rank();
    if (rank == 0) return b_->call("unsqueeze", {x}, {{"dim", int64_t{0}}});
    int64_t dim = static_cast<int64_t>(random_.below(static_cast<size_t>(rank)));
    int64_t size = shape[static_cast<size_t>(dim)].value();
    switch (random_.below(6)) {
      case 0: {
        std::vector<int64_t> dims;
        for (int64_t i = 0; i < rank; ++i) dims.push_back((i + dim) % rank);
        return b_->call("permute", {x}, {{"dims", dims}});
      }
      case 1:
        return b_->call("reshape", {x}, {{"shape", Shape{x.type().num_elements()}}});
      case 2:
        return b_->call("slice", {x}, {{"dim", dim}, {"start", Dim(size / 2)}, {"end", Dim(size)}});
      case 3:
        return b_->call("select", {x}, {{"dim", dim}, {"index", Dim(size - 1)}});
      case 4:
        return b_->call("unsqueeze", {x}, {{"dim", dim}});
      default: {
        Shape bigger = shape;
        bigger.insert(bigger.begin(), Dim(2));
        return rank < 3 ? b_->call("expand", {x}, {{"size", bigger}}) : Value();
      }
    }
  }

  Random& random_;
  Module& module_;
  std::unique_ptr<Builder> b_;
  std::vector<Value> values_;
};

// A value in eager: the places of its elements in memory that others may share.
struct Place {
  std::shared_ptr<std::vector<double>> memory;
  std::vector<int64_t> shape;
  std::vector<double> offsets;

  Tensor load() const {
    Tensor tensor = Tensor::zeros(DType::f32, shape);
    for (size_t i = 0; i < offsets.size(); ++i)
      tensor.floats[i] = (*memory)[static_cast<size_t>(offsets[i])];
    return tensor;
  }
  void store(const Tensor& tensor) {
    for (size_t i = 0; i < offsets.size(); ++i)
      (*memory)[static_cast<size_t>(offsets[i])] = tensor.floats[i];
  }
  static Place fresh(const Tensor& tensor) {
    Place place{std::make_shared<std::vector<double>>(tensor.floats), tensor.shape, {}};
    for (size_t i = 0; i < tensor.floats.size(); ++i)
      place.offsets.push_back(static_cast<double>(i));
    return place;
  }

  // Whether strides describe the places, as a view in eager needs: the offset is linear in the
  // index.
  bool is_strided() const {
    std::vector<int64_t> counts = row_major_strides(shape);
    for (size_t i = 0; i < offsets.size(); ++i) {
      double expected = offsets[0];
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        int64_t index = static_cast<int64_t>(i) / counts[dim] % shape[dim];
        if (shape[dim] > 1)
          expected +=
              static_cast<double>(index) * (offsets[static_cast<size_t>(counts[dim])] - offsets[0]);
      }
      if (expected != offsets[i]) return false;
    }
    return true;
  }
};

class Eager {
 public:
  explicit Eager(const Graph& graph) : graph_(graph) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      places_[graph_.params[i].get()] = Place::fresh(inputs[i]);
    for (const auto& node : graph_.nodes) run_node(*node);
    std::vector<Tensor> outputs;
    for (Value output : graph_.outputs) outputs.push_back(places_[output.node].load());
    return outputs;
  }
  Tensor input_now(const std::string& name) {
    for (const auto& param : graph_.params)
      if (param->name == name) return places_[param.get()].load();
    return {};
  }

 private:
  Tensor apply(const Node& node, std::vector<Tensor> operands) {
    std::vector<const Tensor*> pointers;
    for (const Tensor& operand : operands) pointers.push_back(&operand);
    auto results = node.op->reference.function(node, pointers);
    EXPECT_TRUE(results.ok()) << node.name;
    return results.ok() ? results->front() : Tensor();
  }

  void run_node(const Node& node) {
    bool is_view = node.op->traits.op_class == OpClass::view && node.op->name != "clone";
    if (is_view) {
      // The same view of the offsets says where the elements lie.
      const Place& base = places_[node.operands[0].node];
      Tensor offsets = Tensor::zeros(DType::f32, base.shape);
      offsets.floats = base.offsets;
      Tensor moved = apply(node, {offsets});
      Place place{base.memory, moved.shape, moved.floats};
      bool is_copied = node.op->name == "reshape" && !place.is_strided();
      places_[&node] = is_copied ? Place::fresh(place.load()) : place;
      return;
    }
    std::vector<Tensor> operands;
    for (Value operand : node.operands) operands.push_back(places_[operand.node].load());
    Tensor result = apply(node, operands);
    places_[&node] = Place::fresh(result);
    if (!node.in_place) return;
    places_[&node] = places_[node.operands[0].node];
    places_[&node].store(result);
  }

  const Graph& graph_;
  std::map<const Node*, Place> places_;
};

std::vector<Tensor> make_inputs(const Graph& graph, Random& random) {
  std::vector<Tensor> inputs;
  for (const auto& param : graph.params) {
    Tensor input = Tensor::zeros(param->types[0].dtype, param->types[0].static_shape());
    for (double& value : input.floats) value = random.unit() * 2 - 1;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

void expect_equal(const Tensor& a, const Tensor& b, const std::string& what,
                  double tolerance = 1e-9) {
  ASSERT_EQ(a.shape, b.shape) << what;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    double x = a.get(i), y = b.get(i);
    bool is_same = (std::isnan(x) && std::isnan(y)) || x == y ||
                   std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
    ASSERT_TRUE(is_same) << what << ": element " << i << " is " << x << ", was " << y;
  }
}

void check_seed(uint64_t seed) {
  Random random(seed);
  Unit unit;
  GraphMaker maker(unit.module, random);
  maker.grow(18);
  ASSERT_FALSE(maker.builder().failed()) << maker.builder().error().message;
  std::vector<Tensor> inputs = make_inputs(unit.module.main(), random);
  EvalOptions exact;
  exact.round = false;
  std::unique_ptr<Graph> original = unit.module.main().clone();
  Eager eager(*original);
  std::vector<Tensor> before = eager.run(inputs);

  std::string text = print(unit.module);
  Result<Pipeline> pipeline = parse_pipeline("graph");
  ASSERT_TRUE(pipeline.ok()) << pipeline.error().message;
  PassContext context{builtin_registry(), *find_target("avx2")};
  for (const PipelineStep& step : pipeline->steps) {
    RunOptions options;
    options.check_honesty = true;
    Pipeline one{{step}};
    auto report = run_pipeline(unit, one, options, context);
    std::string what = fmt::format("seed {} after '{}':\n{}\nwas\n{}", seed, step.pass->name,
                                   print(unit.module), text);
    ASSERT_TRUE(report.ok()) << report.error().message << "\n" << what;
    auto after = evaluate(unit.module, unit.module.main(), inputs, exact);
    ASSERT_TRUE(after.ok()) << after.error().message << "\n" << what;
    ASSERT_EQ(after->outputs.size(), before.size());
    for (size_t i = 0; i < before.size(); ++i) expect_equal(after->outputs[i], before[i], what);
    for (const Mutation& mutation : unit.module.main().mutations)
      expect_equal(after->mutated[mutation.target], eager.input_now(mutation.target), what);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = original->params[i]->name;
      if (after->mutated.count(name) == 0) expect_equal(inputs[i], eager.input_now(name), what);
    }
  }
}

TEST(Meaning, TheGraphPipelineKeepsIt) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    check_seed(seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Gives every weight that a graph names random elements, all positive: variances are among them.
void make_weights(Module& module, Random& random) {
  for (const auto& graph : module.graphs) {
    for (const auto& node : graph->nodes) {
      std::string name = node->string_attr("name");
      if (node->op->name != kConstantOp || name.empty() || module.weights.count(name) > 0) continue;
      Tensor tensor = Tensor::zeros(node->types[0].dtype, node->types[0].static_shape());
      for (double& value : tensor.floats) value = random.unit() + 0.5;
      auto bytes = std::make_shared<std::vector<std::byte>>(to_bytes(tensor));
      Weight& weight = module.weights[name];
      weight.data.type = node->types[0];
      weight.data.strides = row_major_strides(tensor.shape);
      weight.data.bytes = bytes->data();
      weight.data.num_bytes = bytes->size();
      weight.data.owner = bytes;
    }
  }
}

bool is_static(const Graph& graph) {
  for (const auto& param : graph.params)
    if (!param->types[0].is_static()) return false;
  return true;
}

// True when the case could be run on both sides.
bool check_case(const file_test::FileCase& test, const std::string& where) {
  auto module = parse(test.input, builtin_registry());
  auto pipeline = parse_pipeline(test.action);
  if (!module.ok() || !pipeline.ok()) return false;  // a test of errors
  auto end = check_forms(*pipeline, form_of(*module));
  if (!end.ok() || *end >= Form::loops || !is_static(module->main())) return false;
  Unit unit{*std::move(module), {}};
  Random random(1);
  make_weights(unit.module, random);
  std::vector<Tensor> inputs = make_inputs(unit.module.main(), random);
  EvalOptions exact;
  exact.round = false;
  auto before = evaluate(unit.module, unit.module.main(), inputs, exact);
  if (!before.ok()) return false;  // in place: the random graphs below see to those
  PassContext context{builtin_registry(), *find_target("avx2")};
  RunOptions options;
  options.check_honesty = true;
  auto report = run_pipeline(unit, *pipeline, options, context);
  EXPECT_TRUE(report.ok()) << where << ": " << report.error().message;
  if (!report.ok()) return false;
  auto after = evaluate(unit.module, unit.module.main(), inputs, exact);
  EXPECT_TRUE(after.ok()) << where << ": " << after.error().message;
  if (!after.ok()) return false;
  for (size_t i = 0; i < before->outputs.size(); ++i)
    expect_equal(after->outputs[i], before->outputs[i], where, 1e-4);
  return true;
}

TEST(Meaning, TheCasesOfTheFilesKeepIt) {
  int checked = 0;
  for (const PassDef& pass : builtin_passes()) {
    std::string file = "tests/passes/" + pass.name + ".lathe";
    std::ifstream stream(file);
    std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (text.empty()) continue;  // the house test of names asks for it
    auto cases = file_test::read_cases(text, file);
    ASSERT_TRUE(cases.ok()) << file << ": " << cases.error().message;
    for (const file_test::FileCase& test : *cases)
      checked += check_case(test, fmt::format("{}:{}", file, test.line)) ? 1 : 0;
  }
  EXPECT_GE(checked, 30);
}

}  // namespace
}  // namespace lathe
