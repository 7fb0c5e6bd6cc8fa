// Outlining: see outline.h.
#include "passes/analysis/outline.h"

#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lathe {
namespace {

// The body of one group, and the values it captures, in the order of its params: they may be of
// groups that are outlined before this one ends.
struct Outlined {
  std::unique_ptr<Graph> body = std::make_unique<Graph>();
  std::vector<Value> captured;
};

class Outliner {
 public:
  Outliner(Module& module, Graph& graph, const OpDef& fused, const OpDef& param,
           std::string_view pass)
      : module_(module), graph_(graph), fused_(fused), param_(param), pass_(pass) {}

  void run(const std::vector<FusionGroup>& groups) {
    for (const FusionGroup& group : groups) {
      for (Node* member : group.members) group_of_[member] = &group;
    }
    find_read_outside();
    std::vector<std::unique_ptr<Node>> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (std::unique_ptr<Node>& node : old) {
      const FusionGroup* found = group_of(node.get());
      if (found == nullptr) {
        for (Value& operand : node->operands) operand = renamed(operand);
        graph_.nodes.push_back(std::move(node));
        continue;
      }
      const FusionGroup& group = *found;
      const bool is_last = node.get() == group.members.back();
      absorb(bodies_[&group], group, std::move(node));
      if (is_last) graph_.nodes.push_back(finish(std::move(bodies_[&group]), group));
    }
    for (Value& output : graph_.outputs) output = renamed(output);
    for (Mutation& mutation : graph_.mutations) mutation.value = renamed(mutation.value);
  }

 private:
  Value renamed(Value value) const {
    auto found = replaced_.find(value);
    return found == replaced_.end() ? value : found->second;
  }

  const FusionGroup* group_of(const Node* node) const {
    auto found = group_of_.find(node);
    return found == group_of_.end() ? nullptr : found->second;
  }

  void find_read_outside() {
    for (const auto& node : graph_.nodes)
      for (Value operand : node->operands)
        if (operand && group_of(operand.node) != group_of(node.get()))
          read_outside_.insert(operand);
    for (Value output : graph_.outputs) read_outside_.insert(output);
    for (const Mutation& mutation : graph_.mutations) read_outside_.insert(mutation.value);
  }

  void absorb(Outlined& outlined, const FusionGroup& group, std::unique_ptr<Node> node) {
    for (Value& operand : node->operands) {
      if (!operand) continue;
      if (group_of(operand.node) == &group) continue;
      operand = capture(outlined, operand);
    }
    outlined.body->nodes.push_back(std::move(node));
  }

  Value capture(Outlined& outlined, Value value) {
    for (size_t i = 0; i < outlined.captured.size(); ++i) {
      if (outlined.captured[i] == value) return {outlined.body->params[i].get(), 0};
    }
    auto param = std::make_unique<Node>();
    param->op = &param_;
    param->attrs.resize(param_.attrs.size());
    param->name = value.node->name + (value.index ? "_" + std::to_string(value.index) : "");
    param->types = {value.type()};
    param->loc = value.node->loc;
    outlined.captured.push_back(value);
    outlined.body->params.push_back(std::move(param));
    return {outlined.body->params.back().get(), 0};
  }

  // Members keep their names; a param has that of what it captures, or one like it.
  static void name_params(Graph& body) {
    std::unordered_set<std::string> taken;
    for (const auto& node : body.nodes) taken.insert(node->name);
    for (const auto& param : body.params) {
      const std::string name = param->name;
      for (int i = 1; !taken.insert(param->name).second; ++i)
        param->name = name + "_" + std::to_string(i);
    }
  }

  std::unique_ptr<Node> finish(Outlined outlined, const FusionGroup& group) {
    Node* last = group.members.back();
    std::vector<Loc> locs;
    for (Node* member : group.members) locs.push_back(member->loc);
    name_params(*outlined.body);
    outlined.body->name = last->name;
    outlined.body->outputs = {{last, 0}};
    for (Node* member : group.members)
      if (member != last && read_outside_.count({member, 0}) != 0)
        outlined.body->outputs.push_back({member, 0});
    auto node = std::make_unique<Node>();
    node->op = &fused_;
    node->attrs.resize(fused_.attrs.size());
    node->name = last->name;
    for (Value captured : outlined.captured) node->operands.push_back(renamed(captured));
    node->list_sizes = {static_cast<int>(node->operands.size())};
    for (Value output : outlined.body->outputs) {
      replaced_[output] = {node.get(), static_cast<int>(node->types.size())};
      node->types.push_back(output.type());
    }
    node->loc = module_.locs.derive(pass_, std::move(locs));
    node->bodies.push_back(std::move(outlined.body));
    return node;
  }

  Module& module_;
  Graph& graph_;
  const OpDef& fused_;
  const OpDef& param_;
  std::string_view pass_;
  std::unordered_map<const Node*, const FusionGroup*> group_of_;
  std::unordered_map<const FusionGroup*, Outlined> bodies_;
  std::set<Value> read_outside_;  // of their group
  std::map<Value, Value> replaced_;
};

}  // namespace

Status outline(Module& module, Graph& graph, const Registry& ops, std::string_view pass,
               const std::vector<FusionGroup>& groups) {
  if (groups.empty()) return Ok{};
  const OpDef* fused = ops.find("fused");
  const OpDef* param = ops.find("param");
  LATHE_CHECK(fused != nullptr && param != nullptr, "the op table lacks 'fused' or 'param'");
  Outliner(module, graph, *fused, *param, pass).run(groups);
  return Ok{};
}

}  // namespace lathe
