// The pipelines that have a name, as prose: what runs, in which order, and why there.
#include "passes/pipeline/pipeline.h"

namespace lathe {
namespace {

// What needs no target: from what PyTorch wrote to a graph of core and structured ops.
std::vector<StepReason> graph_steps() {
  return {
      {"functionalize", "first, because every later pass may then forget the order of nodes"},
      {"collect_guards",
       "before sizes are numbers: what ops demand of symbols is checked when they get values"},
      {"specialize_shapes",
       "before anything looks at sizes, because kernels are built for known ones and much folds "
       "away once a size is a number"},
      {"drop_noops",
       "before patterns are sought, because clones, casts and dropout stand between their parts"},
      {"fold_positions",
       "before attention is found: a mask that is built from positions is then known to be causal"},
      {"recognize_structured",
       "before decompose, which takes apart what is left; attention must be found while its "
       "softmax is whole"},
      {"dce",
       "because recognition leaves behind what it replaced, which need not be taken apart "
       "or folded"},
      {"decompose", "so that what follows meets few ops"},
      {"fold_batch_norm",
       "after decompose, when every matrix product is a matmul, and before the constants fold"},
      {"fold_scale", "beside it: a factor of each channel goes where a norm's does"},
      {"convolution_to_matmul", "behind the folds, which look for convolutions"},
      {"space_to_depth", "behind it, which takes windows that do not overlap"},
      {"widen_groups", "behind it, for what is still a convolution"},
      {"fold_constants", "masks and positions become literals once sizes are known"},
      {"simplify", "decomposing leaves views of views, and folding leaves ones and zeros"},
      {"sink_permutes", "when views are merged, which its patterns look through"},
      {"simplify", "what transposes rows back cancels with what transposed them"},
      {"cse", "after folding, which makes equal what was computed twice in different words"},
      {"merge_matmuls", "after cse, by which products read the same rows"},
      {"dce", "last, because every pass above leaves behind what it replaced"},
  };
}

std::vector<StepReason> with(std::vector<StepReason> steps, std::vector<StepReason> more) {
  steps.insert(steps.end(), more.begin(), more.end());
  return steps;
}

}  // namespace

const std::vector<NamedPipeline>& pipelines() {
  static const std::vector<NamedPipeline> table = {
      {"default", "everything, from a PyTorch graph to a planned program",
       with(graph_steps(),
            {
                {"split_group_norm", "before choose_layout, which then places what it makes"},
                {"choose_layout", "before fusion, which must not cross a change of layout"},
                {"fuse_epilogue",
                 "before fuse_pointwise, or the bias and the activation of a "
                 "contraction would join other groups"},
                {"repeat_casts", "before fuse_pointwise, which takes a cast into one loop"},
                {"fuse_pointwise", "what is left between contractions becomes few loops"},
                {"choose_kernels", "last on the graph, when regions and layouts are settled"},
                {"lower_to_loops", "the graph's job is done: loops, kernels and launches"},
                {"plan_memory", "last, because only now is every temporary known"},
            })},
      {"graph", "the part of default that needs no target", graph_steps()},
      {"minimal",
       "only what running needs: the base line that shows what the rest buys",
       {
           {"functionalize", "loops have no in-place ops"},
           {"collect_guards", "sizes with which no op would run are refused by their line"},
           {"specialize_shapes", "kernels are built for known sizes"},
           {"drop_noops", "asserts and dropout have no kernel"},
           {"decompose", "composite ops have no kernel"},
           {"dce", "what nothing reads would be launched all the same"},
           {"choose_kernels", "a product by plain loops would hide what the other passes buy"},
           {"lower_to_loops", "one kernel for each op"},
           {"plan_memory", "backends run planned programs"},
       }},
  };
  return table;
}

const std::vector<PassDef>& builtin_passes() {
  static const std::vector<PassDef> table = all_passes();
  return table;
}

const PassDef* find_pass(std::string_view name) {
  for (const PassDef& pass : builtin_passes())
    if (pass.name == name) return &pass;
  return nullptr;
}

}  // namespace lathe
