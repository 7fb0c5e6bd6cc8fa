// Rewrite rules: a head op, an equation, and a function that builds the right side.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/node.h"
#include "ir/support/result.h"
#include "passes/analysis/uses.h"

namespace lathe {

// Why a rule that nearly fits does not apply, at the node concerned.
struct RuleRefusal {
  Loc loc;
  std::string message;
};

struct RuleContext {
  const UseCounts& uses;  // as before the sweep; 0 for nodes made since
  std::vector<RuleRefusal>& refusals;
  std::vector<Loc> matched = {};  // a rule adds the nodes that its left side stands for
};

// The replacement of the head's only result, or null when the rule does not apply; then it must not
// have built anything.
using RuleFn = Value(Builder& b, const Node& head, RuleContext& context);

struct Rule {
  std::string name;      // counters and tests speak of it
  std::string head;      // op that the left side ends in
  std::string equation;  // left = right, for the reader
  RuleFn* apply;
};

// Tries the rules at every node once, in order, and counts those that fire by name. New nodes are
// derived by the rule from the head and what it matched. True when one fired.
Result<bool> apply_rules(Module& module, Graph& graph, const Registry& ops,
                         const std::vector<Rule>& rules, std::map<std::string, int64_t>& counters,
                         std::vector<RuleRefusal>& refusals);

// Ops that exporters took apart, found again. In the order in which they are tried: attention needs
// its softmax as written, so it comes first.
std::vector<Rule> attention_rules();
std::vector<Rule> norm_rules();
std::vector<Rule> activation_rules();
std::vector<Rule> product_rules();

// Smaller ways to say the same, exactly: no rule here changes a rounding.
std::vector<Rule> view_rules();
std::vector<Rule> arithmetic_rules();
std::vector<Rule> attention_mask_rules();
std::vector<Rule> attention_head_rules();

}  // namespace lathe
