// One sweep of rules over a graph.
#include <unordered_map>

#include "passes/analysis/rewrite.h"
#include "passes/rules/rule.h"

namespace lathe {

Result<bool> apply_rules(Module& module, Graph& graph, const Registry& ops,
                         const std::vector<Rule>& rules, std::map<std::string, int64_t>& counters,
                         std::vector<RuleRefusal>& refusals) {
  std::unordered_map<const OpDef*, std::vector<const Rule*>> by_head;
  for (const Rule& rule : rules)
    if (const OpDef* head = ops.find(rule.head)) by_head[head].push_back(&rule);
  UseCounts uses(graph);
  auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    auto found = by_head.find(node.op);
    if (found == by_head.end() || node.types.size() != 1 || node.in_place) return Replacement();
    for (const Rule* rule : found->second) {
      RuleContext context{uses, refusals};
      size_t mark = graph.nodes.size();
      Value value = rule->apply(b, node, context);
      if (b.failed()) return b.error();
      if (!value) continue;
      // Promotion on the way can make what the left side computes wider than its structured op
      // answers (a norm of f16 times a weight of f32 is f32): then they are not the same.
      if (value.type().dtype != node.types[0].dtype) {
        graph.nodes.resize(mark);
        continue;
      }
      LATHE_CHECK(value.type() == node.types[0], "rule '" + rule->name + "' gives " +
                                                     to_string(value.type()) + " for " +
                                                     to_string(node.types[0]));
      context.matched.insert(context.matched.begin(), node.loc);
      Loc loc = module.locs.derive(rule->name, context.matched);
      for (size_t i = mark; i < graph.nodes.size(); ++i) graph.nodes[i]->loc = loc;
      ++counters[rule->name];
      return Replacement(std::vector<Value>{value});
    }
    return Replacement();
  };
  return rewrite(module, graph, ops, "rules", visit);
}

}  // namespace lathe
