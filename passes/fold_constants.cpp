// Computes at compile time what depends on literals alone: positions, masks, tables of sines.
//
// After decompose, when few kinds of ops are left, and before cse. Evaluates with the rows' own
// references, rounding after every op as the evaluator does. Results above `limit` elements are
// left to run time.
//
// What repeats along a dim is computed and kept once, and expanded: the causal mask of a batch is
// that of one sequence, and looks like it to who reads it.
//
// Never reads the bytes of named weights: what depends on those is computed once, when they are
// bound, by the program's init.
#include <cmath>
#include <cstdlib>
#include <unordered_map>

#include "fmt/format.h"
#include "ir/graph/tensor.h"
#include "ir/support/diag_codes.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/thin_tensor.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_fold_constants(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_fold_constants() {
  return {
      .name = "fold_constants",
      .summary = "compute what depends on literals alone",
      .needs = Form::functional,
      .leaves = Form::functional,
      .options = {{"limit", "1000000", "elements of the largest result to fold"}},
      .counters = {"folded", "left"},
      .example = R"(
func @main(%x: f32[3]) -> f32[3] {
  %a = constant() {value = [1.0, 2.0, 3.0], dtype = f32, shape = [3]}
  %b = mul(%a, %a)
  %y = add(%x, %b)
  return %y
}
=>
func @main(%x: f32[3]) -> f32[3] {
  %a = constant() {value = [1.0, 2.0, 3.0], dtype = f32, shape = [3]}
  %b = constant() {value = [1.0, 4.0, 9.0], dtype = f32, shape = [3]}
  %y = add(%x, %b)
  return %y
}
)",
      .run = run_fold_constants,
  };
}

namespace {

// The attribute of a constant that holds `tensor`: one value when all are equal.
Attr literal_value(const Tensor& tensor) {
  const auto as_list = [](auto values) {
    bool is_splat = !values.empty();
    for (auto value : values)
      is_splat = is_splat && value == values[0] && std::signbit(value) == std::signbit(values[0]);
    if (is_splat) values.resize(1);
    return Attr(std::move(values));
  };
  return is_float(tensor.dtype) ? as_list(tensor.floats) : as_list(tensor.integers);
}

// An attribute of the node is a size that is not known yet.
bool is_symbolic(const Node& node) {
  for (const Attr& attr : node.attrs) {
    if (const Dim* dim = std::get_if<Dim>(&attr); dim != nullptr && !dim->is_const()) return true;
    if (const auto* dims = std::get_if<std::vector<Dim>>(&attr))
      for (const Dim& dim : *dims)
        if (!dim.is_const()) return true;
  }
  return false;
}

// As the evaluator does after every op.
void round_elements(Tensor& tensor) {
  for (double& value : tensor.floats) value = round_to(tensor.dtype, value);
  if (tensor.dtype == DType::i64) return;
  for (int64_t& value : tensor.integers)
    value = static_cast<int64_t>(round_to(tensor.dtype, static_cast<double>(value)));
}

// A literal of so many elements is written out, also where it repeats.
constexpr int64_t kWrittenOut = 1024;

class ConstantFolder {
 public:
  ConstantFolder(int64_t limit, PassContext& context) : limit_(limit), context_(context) {}

  Result<Replacement> visit(Builder& b, Node& node) {
    if (!is_foldable(node)) return Replacement();
    const TensorType& type = node.types[0];
    const bool is_large = *type.static_elements() > limit_;
    if (is_literal(node)) {  // already what it should be: only remember it
      std::vector<int64_t> shape = type.static_shape();
      if (is_large && !splat_value(node.result())) return Replacement();
      if (is_large) shape.assign(shape.size(), 1);
      known_.emplace(&node, thinned(literal_tensor(node.attr("value"), type.dtype, shape)));
      return Replacement();
    }
    if (node.op->traits.op_class == OpClass::view && node.op->traits.view == ViewKind::expand)
      return expand(b, node);
    if (node.op->traits.op_class == OpClass::elementwise) return fold_elementwise(b, node);
    if (node.operands.empty() && is_large) {
      if (auto splat = splat_value(node.result())) remember_splat(node, *splat);
      return Replacement();
    }
    return fold_whole(b, node);
  }

 private:
  bool is_foldable(const Node& node) const {
    const Traits& traits = node.op->traits;
    if (!node.op->reference || !node.bodies.empty() || node.types.empty()) return false;
    if (traits.has_effects || traits.is_random || is_weight(node)) return false;
    if (traits.op_class == OpClass::structure || traits.op_class == OpClass::contraction)
      return is_literal(node);
    for (Value operand : node.operands)
      if (operand && known_.find(operand.node) == known_.end()) return false;
    if (is_symbolic(node)) return false;
    for (const TensorType& type : node.types)
      if (!type.static_elements()) return false;
    return !node.operands.empty() || traits.op_class == OpClass::source || is_literal(node);
  }

  void remember_splat(const Node& node, double value) {
    const TensorType& type = node.types[0];
    Tensor one = Tensor::zeros(type.dtype, std::vector<int64_t>(type.shape.size(), 1));
    one.set(0, value);
    known_.emplace(&node, std::move(one));
  }

  // As much is known of it as of its operand.
  Result<Replacement> expand(Builder& b, const Node& node) {
    const Value operand = node.operands[0];
    Tensor tensor = known_.find(operand.node)->second;
    const std::vector<int64_t> shape = node.types[0].static_shape();
    tensor.shape.insert(tensor.shape.begin(), shape.size() - tensor.shape.size(), 1);
    if (is_literal(*operand.node) && is_expanded(tensor, shape)) {
      known_.emplace(&node, std::move(tensor));
      return Replacement();
    }
    return give(b, node, {std::move(tensor)});
  }

  Result<Replacement> fold_whole(Builder& b, const Node& node) {
    std::vector<Tensor> operands;
    for (Value operand : node.operands) {
      if (operand && *operand.type().static_elements() > limit_) return Replacement();
      operands.push_back(
          operand ? widened(known_.find(operand.node)->second, operand.type().static_shape())
                  : Tensor());
    }
    for (const TensorType& type : node.types)
      if (*type.static_elements() > limit_) return Replacement();
    return fold(b, node, node, operands);
  }

  // On operands without what repeats.
  Result<Replacement> fold_elementwise(Builder& b, const Node& node) {
    std::vector<Tensor> thin;
    std::vector<Value> operands;
    bool is_thinner = false;
    for (Value operand : node.operands) {
      thin.push_back(operand ? known_.find(operand.node)->second : Tensor());
      is_thinner = is_thinner || (operand && thin.back().shape != operand.type().static_shape());
    }
    if (!is_thinner) return fold_whole(b, node);
    // The second operand is repeated to the shape of the first.
    if (!node.op->traits.reads_first) {
      std::vector<int64_t> shape = thin[1].shape;
      shape.insert(shape.begin(), thin[0].shape.size() - shape.size(), 1);
      if (Tensor{.shape = shape}.num_elements() > limit_) return Replacement();
      thin[0] = Tensor::zeros(thin[0].dtype, shape);
    }
    for (size_t i = 0; i < thin.size(); ++i)
      operands.push_back(node.operands[i] ? literal(b, thin[i], thin[i].shape) : Value());
    NamedAttrs attrs;
    for (size_t i = 0; i < node.attrs.size(); ++i)
      attrs.push_back({node.op->attrs[i].name, node.attrs[i]});
    const Value small = b.call(node.op->name, operands, std::move(attrs));
    if (b.failed()) return b.error();
    if (*small.type().static_elements() <= limit_) return fold(b, node, *small.node, thin);
    if (small.type().shape == node.types[0].shape) return Replacement();
    const Value wide = b.call("expand", {small}, {{"size", node.types[0].shape}});
    if (b.failed()) return b.error();
    return Replacement({wide});
  }

  // What `computed` gives, for the node, whose results are as wide or wider.
  Result<Replacement> fold(Builder& b, const Node& node, const Node& computed,
                           std::span<const Tensor> operands) {
    std::vector<const Tensor*> given;
    for (const Tensor& operand : operands) given.push_back(&operand);
    auto results = computed.op->reference.function(computed, given);
    if (!results.ok()) return leave(node, results.error().message);
    if (results->size() != node.types.size()) return leave(node, "its reference gave no value");
    for (Tensor& tensor : *results) {
      round_elements(tensor);
      tensor = thinned(std::move(tensor));
    }
    return give(b, node, *std::move(results));
  }

  Result<Replacement> give(Builder& b, const Node& node, std::vector<Tensor> results) {
    std::vector<Value> values;
    for (size_t i = 0; i < results.size(); ++i) {
      const Value value = literal(b, results[i], node.types[i].static_shape());
      if (b.failed()) return b.error();
      known_.emplace(value.node, std::move(results[i]));
      values.push_back(value);
    }
    context_.counters["folded"] += 1;
    return Replacement(std::move(values));
  }

  // Whether a literal of that shape is one of fewer elements, expanded.
  static bool is_expanded(const Tensor& thin, const std::vector<int64_t>& shape) {
    return thin.num_elements() > 1 && thin.shape != shape &&
           Tensor{.shape = shape}.num_elements() > kWrittenOut;
  }

  Value literal(Builder& b, const Tensor& thin, const std::vector<int64_t>& shape) {
    const bool is_whole = thin.num_elements() <= 1 || is_expanded(thin, shape);
    const Tensor elements = is_whole ? thin : widened(thin, shape);
    const std::vector<int64_t>& own = is_expanded(thin, shape) ? thin.shape : shape;
    const Value constant = b.call("constant", {},
                                  {{"value", literal_value(elements)},
                                   {"dtype", thin.dtype},
                                   {"shape", Shape(own.begin(), own.end())}});
    if (own == shape) return constant;
    return b.call("expand", {constant}, {{"size", Shape(shape.begin(), shape.end())}});
  }

  Result<Replacement> leave(const Node& node, const std::string& why) {
    context_.counters["left"] += 1;
    context_.refusals.push_back({node.loc, fmt::format("'{}' is not folded: {}", node.name, why)});
    return Replacement();
  }

  int64_t limit_;
  PassContext& context_;
  std::unordered_map<const Node*, Tensor> known_;  // thin
};

Result<Changed> run_fold_constants(Unit& unit, const PassOptions& options, PassContext& context) {
  int64_t limit = std::strtoll(options.at("limit").c_str(), nullptr, 10);
  if (limit <= 0)
    return Diag{
        code::kBadValue, Loc::unknown(),
        fmt::format("'fold_constants' needs a positive limit, got '{}'", options.at("limit"))};
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    ConstantFolder folder(limit, context);
    auto visit = [&](Builder& b, Node& node) { return folder.visit(b, node); };
    LATHE_TRY(bool folded, rewrite(unit.module, *graph, context.ops, "fold_constants", visit));
    if (folded) changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
