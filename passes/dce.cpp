// Removes what nothing reads.
//
// Last among the graph passes, because every other one leaves behind what it replaced. Ops with
// effects stay, and so do weights in the module: another graph may name them.
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_dce(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_dce() {
  return {
      .name = "dce",
      .summary = "remove ops whose results nothing reads",
      .needs = Form::functional,
      .leaves = Form::functional,
      .counters = {"removed"},
      .example = R"(
func @main(%x: f32[4]) -> f32[4] {
  %a = exp(%x)
  %b = neg(%a)
  %y = abs(%x)
  return %y
}
=>
func @main(%x: f32[4]) -> f32[4] {
  %y = abs(%x)
  return %y
}
)",
      .run = run_dce,
  };
}

namespace {

Result<Changed> run_dce(Unit& unit, const PassOptions&, PassContext& context) {
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    size_t before = graph->nodes.size();
    if (!graph->erase_dead()) continue;
    context.counters["removed"] += static_cast<int64_t>(before - graph->nodes.size());
    changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
