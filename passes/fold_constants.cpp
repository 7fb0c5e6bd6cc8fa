// Computes at compile time what depends on literals alone: positions, masks, tables of sines.
//
// After decompose, when few kinds of ops are left, and before cse. Evaluates with the rows' own
// references, rounding after every op as the evaluator does. Results above `limit` elements are
// left to run time.
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
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run(Unit& unit, const PassOptions& options, PassContext& context);

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
      .run = run,
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

class Folder {
 public:
  Folder(int64_t limit, PassContext& context) : limit_(limit), context_(context) {}

  Result<Replacement> visit(Builder& b, Node& node) {
    if (!is_foldable(node)) return Replacement();
    std::vector<Tensor> empty(1);
    std::vector<const Tensor*> operands;
    for (Value operand : node.operands)
      operands.push_back(operand ? &known_.find(operand.node)->second : &empty[0]);
    auto computed = node.op->reference.function(node, operands);
    if (!computed.ok()) return leave(node, computed.error().message);
    if (computed->size() != node.types.size()) return leave(node, "its reference gave no value");
    if (is_literal(node)) {  // already what it should be: only remember it
      known_.emplace(&node, std::move(computed->front()));
      return Replacement();
    }
    std::vector<Value> values;
    for (Tensor& tensor : *computed) round_elements(tensor);
    for (size_t i = 0; i < computed->size(); ++i) {
      Value value = b.call("constant", {},
                           {{"value", literal_value((*computed)[i])},
                            {"dtype", node.types[i].dtype},
                            {"shape", node.types[i].shape}});
      if (b.failed()) return b.error();
      known_.emplace(value.node, std::move((*computed)[i]));
      values.push_back(value);
    }
    context_.counters["folded"] += 1;
    return Replacement(std::move(values));
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
    bool has_source = traits.op_class == OpClass::source || is_literal(node);
    if (node.operands.empty() && !has_source) return false;
    for (const TensorType& type : node.types) {
      auto count = type.static_elements();
      if (!count || *count > limit_) return false;
    }
    return true;
  }

  Result<Replacement> leave(const Node& node, const std::string& why) {
    context_.counters["left"] += 1;
    context_.refusals.push_back({node.loc, fmt::format("'{}' is not folded: {}", node.name, why)});
    return Replacement();
  }

  int64_t limit_;
  PassContext& context_;
  std::unordered_map<const Node*, Tensor> known_;
};

Result<Changed> run(Unit& unit, const PassOptions& options, PassContext& context) {
  int64_t limit = std::strtoll(options.at("limit").c_str(), nullptr, 10);
  if (limit <= 0)
    return Diag{
        code::kBadValue, Loc::unknown(),
        fmt::format("'fold_constants' needs a positive limit, got '{}'", options.at("limit"))};
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    Folder folder(limit, context);
    auto visit = [&](Builder& b, Node& node) { return folder.visit(b, node); };
    LATHE_TRY(bool folded, rewrite(unit.module, *graph, context.ops, "fold_constants", visit));
    if (folded) changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
