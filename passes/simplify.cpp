// Says the same in fewer ops, by rules that change no bit of any result: views of views become one,
// neutral elements vanish, a mask that is a triangle becomes a flag.
//
// After fold_constants, whose literals are what the rules look for, and before cse. Stops when no
// rule fires; every rule leaves fewer or simpler ops, so it does.
//
// Does not reassociate or distribute: that changes roundings.
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

Result<Changed> run_simplify(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_simplify() {
  return {
      .name = "simplify",
      .summary = "merge views of views and drop neutral elements",
      .needs = Form::functional,
      .leaves = Form::functional,
      .counters = {"identity", "merge_permutes", "permute_as_reshape", "as_reshape",
                   "merge_reshapes", "merge_expands", "add_zero", "sub_zero", "by_one", "and_true",
                   "twice", "where_known", "full_mask", "mask_of_batch", "causal_mask",
                   "shared_heads"},
      .example = R"(
func @main(%x: f32[2, 3, 4]) -> f32[4, 3, 2] {
  %a = permute(%x) {dims = [1, 0, 2]}
  %b = permute(%a) {dims = [2, 0, 1]}
  return %b
}
=>
func @main(%x: f32[2, 3, 4]) -> f32[4, 3, 2] {
  %a = permute(%x) {dims = [1, 0, 2]}
  %b = permute(%x) {dims = [2, 1, 0]}
  return %b
}
)",
      .run = run_simplify,
  };
}

namespace {

// Chains shorten in one sweep, since operands are simplified before their readers; the bound only
// guards against rules that undo each other.
constexpr int kMostSweeps = 8;

Result<Changed> run_simplify(Unit& unit, const PassOptions&, PassContext& context) {
  std::vector<Rule> rules = view_rules();
  for (auto table : {arithmetic_rules, attention_mask_rules, attention_head_rules})
    for (Rule& rule : table()) rules.push_back(std::move(rule));
  Changed changed = Changed::no;
  std::vector<RuleRefusal> refusals;
  for (Graph* graph : all_graphs(unit.module)) {
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      LATHE_TRY(bool fired,
                apply_rules(unit.module, *graph, context.ops, rules, context.counters, refusals));
      if (!fired) break;
      changed = Changed::yes;
    }
  }
  return changed;
}

}  // namespace
}  // namespace lathe
