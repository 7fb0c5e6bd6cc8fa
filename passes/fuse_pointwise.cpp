// Joins elementwise ops with the loop that reads them: another elementwise op, a reduction, a
// gather.
//
// What one loop computes and the next one reads passes through memory; in one loop it stays in a
// register. Groups grow from their reader upwards: a producer joins when every reader of it is in
// the group, so that nothing is computed twice by two groups and no cycle can form. A reader that
// visits an element several times (the three sweeps of a softmax, overlapping windows) computes it
// anew each time, which pays for arithmetic and not for transcendental functions: those producers
// keep their own loop, and the pass says so. Views join when what they read may join; otherwise the
// loop reads through them anyway.
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "passes/analysis/outline.h"
#include "passes/analysis/patterns.h"
#include "passes/pass.h"

namespace lathe {
namespace {

// A producer this dear is not computed again at every visit: about one transcendental function.
constexpr int kCheap = 4;
// Beyond this the values of a group no longer fit in registers, and its code grows for nothing.
constexpr size_t kMaxMembers = 64;

// Elementwise ops of about one instruction for each element; any other counts as a function.
constexpr std::string_view kArithmeticOps[] = {"abs", "add", "cast", "clamp",   "eq",      "ge",
                                               "gt",  "le",  "lt",   "maximum", "minimum", "mul",
                                               "ne",  "neg", "relu", "sub",     "where"};

// Rough operations per element of an elementwise op.
int cost(const Node& node) {
  for (std::string_view name : kArithmeticOps) {
    if (node.op->name == name) return 1;
  }
  return 8;
}

class Fuser {
 public:
  Fuser(Graph& graph, PassContext& context) : graph_(graph), context_(context), constants_(graph) {
    for (const auto& node : graph.nodes) {
      for (Value operand : node->operands) {
        if (operand) readers_[operand.node].push_back(node.get());
      }
    }
    for (Value output : graph.outputs) kept_[output.node] = true;
    for (const Mutation& mutation : graph.mutations) kept_[mutation.value.node] = true;
  }

  std::vector<FusionGroup> run() {
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      Node* node = graph_.nodes[i].get();
      if (context_.keeps_apart(*node)) continue;
      const int joined = group_to_join(*node);
      if (joined >= 0) {
        groups_[static_cast<size_t>(joined)].push_back(node);
        group_of_[node] = joined;
      } else if (can_lead(*node)) {
        group_of_[node] = static_cast<int>(groups_.size());
        groups_.push_back({node});
      }
    }
    std::vector<FusionGroup> result;
    for (std::vector<Node*>& members : groups_) {
      std::reverse(members.begin(), members.end());
      // Views at the edge compute nothing: without another computation there is nothing to fuse.
      const auto computes = std::count_if(members.begin(), members.end(), [](const Node* node) {
        return node->op->traits.op_class != OpClass::view;
      });
      if (computes < 2) continue;
      context_.counters["fused"] += static_cast<int64_t>(computes) - 1;
      result.push_back({members});
    }
    return result;
  }

 private:
  static bool can_lead(const Node& node) {
    switch (node.op->traits.op_class) {
      case OpClass::elementwise:
      case OpClass::gather:
      case OpClass::reduction:
      case OpClass::normalize:
        return node.types.size() == 1 && !node.op->traits.has_effects;
      default:
        return false;
    }
  }

  // The one group that all readers are in, when the node may join it; -1 otherwise.
  int group_to_join(Node& node) {
    const OpClass op_class = node.op->traits.op_class;
    if (op_class != OpClass::elementwise && op_class != OpClass::view) return -1;
    if (node.types.size() != 1 || kept_.count(&node) != 0) return -1;
    auto readers = readers_.find(&node);
    if (readers == readers_.end()) return -1;
    int group = -1;
    for (const Node* reader : readers->second) {
      auto found = group_of_.find(reader);
      if (found == group_of_.end() || (group >= 0 && found->second != group)) {
        if (group >= 0 && op_class == OpClass::elementwise) refuse_shared(node, readers->second);
        return -1;
      }
      group = found->second;
    }
    const std::vector<Node*>& members = groups_[static_cast<size_t>(group)];
    if (op_class == OpClass::elementwise && !is_worth_repeating(node, *members.front())) return -1;
    if (members.size() >= kMaxMembers) {
      refuse_large(node, *members.front());
      return -1;
    }
    return group;
  }

  bool is_worth_repeating(const Node& node, const Node& root) {
    if (cost(node) <= kCheap) return true;
    const bool repeats =
        root.op->traits.op_class == OpClass::normalize ||
        (root.op->traits.op_class == OpClass::reduction && root.op->num_results > 1);
    const std::optional<int64_t> own = node.types[0].static_elements();
    const std::optional<int64_t> visits = root.types[0].static_elements();
    const bool is_broadcast =
        root.op->traits.op_class != OpClass::reduction && own && visits && *visits > *own;
    if (!repeats && !is_broadcast) return true;
    context_.refusals.push_back(
        {node.loc, "'" + node.name + "' keeps its own loop: '" + root.name +
                       "' would compute it several times for each element"});
    return false;
  }

  void refuse_large(const Node& node, const Node& root) {
    context_.refusals.push_back({node.loc, "'" + node.name + "' keeps its own loop: that of '" +
                                               root.name + "' has " + std::to_string(kMaxMembers) +
                                               " ops already"});
  }

  // Nobody waits for what weights alone decide: it runs once, before the first call.
  void refuse_shared(Node& node, const std::vector<Node*>& readers) {
    if (constants_.contains(node.result())) return;
    context_.refusals.push_back(
        {node.loc, "'" + node.name + "' keeps its own loop: it is read by '" +
                       readers.front()->name + "' and '" + readers.back()->name +
                       "', which are different loops"});
  }

  Graph& graph_;
  PassContext& context_;
  std::unordered_map<const Node*, std::vector<Node*>> readers_;
  std::unordered_map<const Node*, bool> kept_;
  ConstantValues constants_;  // computed from weights alone
  std::unordered_map<const Node*, int> group_of_;
  std::vector<std::vector<Node*>> groups_;  // each from its root, which reads, upwards
};

Result<Changed> run(Unit& unit, const PassOptions&, PassContext& context) {
  Graph& graph = unit.module.main();
  const std::vector<FusionGroup> groups = Fuser(graph, context).run();
  LATHE_DO(outline(unit.module, graph, context.ops, "fuse_pointwise", groups));
  return groups.empty() ? Changed::no : Changed::yes;
}

}  // namespace

PassDef define_fuse_pointwise() {
  return {
      .name = "fuse_pointwise",
      .summary = "join elementwise ops with the loops that read them",
      .needs = Form::core,
      .leaves = Form::fused,
      .options = {},
      .counters = {"fused"},
      .example = R"(
func @main(%x: f32[8, 4], %y: f32[8, 4]) -> f32[8, 4] {
  %0 = mul(%x, %y)
  %1 = add(%0, %x)
  %2 = tanh(%1)
  return %2
}
=>
func @main(%x: f32[8, 4], %y: f32[8, 4]) -> f32[8, 4] {
  %2 = fused([%x, %y]) {
    (%x: f32[8, 4], %y: f32[8, 4])
    %0 = mul(%x, %y)
    %1 = add(%0, %x)
    %2 = tanh(%1)
    return %2
  }
  return %2
}
)",
      .run = run,
  };
}

}  // namespace lathe
