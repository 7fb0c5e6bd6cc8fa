// Copies a case node by node (see rebuild.h).
#include "tests/random/rebuild.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "ir/op/all_ops.h"
#include "tests/random/eager.h"

namespace lathe::random_graphs {
namespace {

// The narrowest range that such values have.
Fill fill_like(const Tensor& tensor) {
  Fill how{.kind = Fill::Kind::quarters, .low = 0, .high = 0};
  bool is_first = true;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double x = tensor.get(i);
    if (!std::isfinite(x)) continue;
    if (std::floor(x * 4) != x * 4) how.kind = Fill::Kind::reals;
    how.low = is_first ? x : std::min(how.low, x);
    how.high = is_first ? x : std::max(how.high, x);
    is_first = false;
  }
  if (!is_float(tensor.dtype)) how.kind = Fill::Kind::integers;
  return how;
}

class Rebuilder {
 public:
  Rebuilder(const Case& from, const Edit& edit) : from_(from), edit_(edit) {}

  std::optional<Case> run() {
    result_.title = from_.title;
    result_.passes = from_.passes;
    result_.sizes = from_.sizes;
    result_.module.dims = from_.module.dims;
    result_.module.hints = from_.module.hints;
    result_.module.graphs.push_back(std::make_unique<Graph>());
    loc_ = result_.module.locs.text("<random>", 1, 1);
    if (!edit_.as_params.empty() && !evaluate()) return std::nullopt;
    const Graph& graph = from_.module.main();
    for (const auto& param : graph.params) add_param({param.get(), 0}, fill_of(param->name));
    for (const auto& node : graph.nodes)
      if (!add(*node)) return std::nullopt;
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      if (!edit_.only_output || *edit_.only_output == i)
        result_.module.main().outputs.push_back(made_.at(graph.outputs[i]));
    prune();
    fill_weights(result_);
    return std::move(result_);
  }

 private:
  Fill fill_of(const std::string& name) const {
    const auto found = from_.fills.find(name);
    return found == from_.fills.end() ? Fill{} : found->second;
  }

  bool evaluate() {
    const Graph& graph = from_.module.main();
    const bool has_writes = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                        [](const auto& node) { return node->in_place; });
    values_ = std::make_unique<EagerRun>(from_.module, EagerOptions{.has_writes = has_writes});
    return values_->run(graph, inputs_of(from_)).ok();
  }

  Dim extent(const Dim& size) const {
    if (edit_.dim) return edit_.dim(size);
    return edit_.extent && size.is_const() ? Dim(edit_.extent(size.value())) : size;
  }

  TensorType type(TensorType type) const {
    if (edit_.dtype) type.dtype = edit_.dtype(type.dtype);
    for (Dim& dim : type.shape) dim = extent(dim);
    return type;
  }

  void add_param(Value old, const Fill& how) {
    Builder builder(result_.module.main(), builtin_registry(), loc_);
    const Value param = builder.param(type(old.type()), old.node->name);
    result_.fills[param.node->name] = how;
    made_[old] = param;
  }

  Attr attr(const Node& node, const AttrSpec& spec, Attr value) const {
    if (edit_.attr) value = edit_.attr(node, spec, value);
    if (auto* dtype = std::get_if<DType>(&value); dtype != nullptr && edit_.dtype)
      *dtype = edit_.dtype(*dtype);
    if (edit_.dim && node.op->name == kConstantOp) return value;
    if (auto* dim = std::get_if<Dim>(&value)) *dim = extent(*dim);
    if (auto* dims = std::get_if<std::vector<Dim>>(&value))
      for (Dim& dim : *dims) dim = extent(dim);
    return value;
  }

  bool add(const Node& node) {
    if (edit_.as_params.count(&node) != 0) {
      for (size_t i = 0; i < node.types.size(); ++i) {
        const Value old{const_cast<Node*>(&node), static_cast<int>(i)};
        add_param(old, fill_like(values_->values(old)));
      }
      return true;
    }
    if (edit_.bypassed == &node) {
      made_[{const_cast<Node*>(&node), 0}] = made_.at(node.operands[edit_.bypass]);
      return true;
    }
    std::vector<Value> operands;
    for (Value operand : node.operands) {
      const bool is_left_out = edit_.left_out_of == &node && operand == edit_.left_out;
      operands.push_back(operand && !is_left_out ? made_.at(operand) : Value{});
    }
    NamedAttrs attrs;
    for (size_t i = 0; i < node.attrs.size(); ++i)
      attrs.emplace_back(node.op->attrs[i].name, attr(node, node.op->attrs[i], node.attrs[i]));
    if (node.op->name == kConstantOp && !node.is_none("name"))
      result_.fills[node.string_attr("name")] = fill_of(node.string_attr("name"));
    Builder builder(result_.module.main(), builtin_registry(), loc_);
    const bool in_place = node.in_place && !edit_.drops_writes;
    Node* made = builder.create(*node.op, operands, node.list_sizes, attrs, node.name, in_place);
    if (made == nullptr) return false;
    for (size_t i = 0; i < node.types.size(); ++i)
      made_[{const_cast<Node*>(&node), static_cast<int>(i)}] = made->result(static_cast<int>(i));
    return made->types.size() == node.types.size();
  }

  void prune() {
    Graph& graph = result_.module.main();
    graph.erase_dead();
    std::set<const Node*> read;
    std::set<std::string> names;
    for (Value output : graph.outputs) read.insert(output.node);
    for (const auto& node : graph.nodes) {
      for (Value operand : node->operands) read.insert(operand.node);
      if (node->op->name == kConstantOp) names.insert(node->string_attr("name"));
    }
    std::erase_if(graph.params, [&](const auto& param) { return read.count(param.get()) == 0; });
    for (const auto& param : graph.params) names.insert(param->name);
    std::erase_if(result_.fills, [&](const auto& entry) { return names.count(entry.first) == 0; });
  }

  const Case& from_;
  const Edit& edit_;
  Case result_;
  Loc loc_;
  std::unique_ptr<EagerRun> values_;
  std::map<Value, Value> made_;
};

}  // namespace

std::optional<Case> rebuild(const Case& from, const Edit& edit) {
  return Rebuilder(from, edit).run();
}

}  // namespace lathe::random_graphs
