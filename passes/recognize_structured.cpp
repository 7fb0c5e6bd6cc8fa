// Finds again the structured ops that an exporter or a model spelled out: attention, layer_norm,
// rms_norm, gelu, silu, relu, matrix products.
//
// Before decompose, while softmax is still whole, and after drop_noops, because clones and dropout
// stand between the parts. Afterwards a .core graph has the structured ops of the .aten graph of
// the same model. Constants are compared to a relative 1e-4, since models round them differently.
//
// Does not recognise a pattern one of whose inner values is read elsewhere: it would be computed
// twice.
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"
#include "passes/rules/rule.h"

namespace lathe {
namespace {

Result<Changed> run_recognize_structured(Unit& unit, const PassOptions& options,
                                         PassContext& context);

}  // namespace

PassDef define_recognize_structured() {
  return {
      .name = "recognize_structured",
      .summary = "find attention, norms, activations and products that were spelled out",
      .needs = Form::functional,
      .leaves = Form::functional,
      .counters = {"softmax", "attention", "layer_norm", "rms_norm", "norm_weight", "norm_bias",
                   "gelu_erf", "gelu_tanh", "silu", "relu", "matmul"},
      .example = R"(
func @main(%x: f32[8]) -> f32[8] {
  %s = sigmoid(%x)
  %y = mul(%x, %s)
  return %y
}
=>
func @main(%x: f32[8]) -> f32[8] {
  %s = sigmoid(%x)
  %y = silu(%x)
  return %y
}
)",
      .run = run_recognize_structured,
  };
}

namespace {

// A norm takes in its weight in the sweep after it was found, and then its bias.
constexpr int kMaxSweeps = 4;

Result<Changed> run_recognize_structured(Unit& unit, const PassOptions&, PassContext& context) {
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    for (auto rules : {attention_rules, norm_rules, activation_rules, product_rules}) {
      for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
        std::vector<RuleRefusal> refusals;
        LATHE_TRY(bool fired, apply_rules(unit.module, *graph, context.ops, rules(),
                                          context.counters, refusals));
        if (fired) changed = Changed::yes;
        if (fired && sweep + 1 < kMaxSweeps) continue;
        for (RuleRefusal& refusal : refusals)
          context.refusals.push_back({refusal.loc, std::move(refusal.message)});
        break;
      }
    }
  }
  return changed;
}

}  // namespace
}  // namespace lathe
