// Widens anew in each loop that reads it what one cast has widened for several.
//
// Loops that read a tensor of halves in f32, one for a sum and one for what the sum scales, would
// share it in f32: a loop more, which writes twice the bytes that both then read. Before
// fuse_pointwise, which takes each cast into the loop that it is for.
//
// Leaves alone: casts that a product or the caller reads, which are in memory all the same; casts
// to no more bytes than they read; and casts of weights, which init makes once.
#include <unordered_map>
#include <unordered_set>

#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"

namespace lathe {
namespace {

bool is_loop(const Node& node) {
  switch (node.op->traits.op_class) {
    case OpClass::elementwise:
    case OpClass::gather:
    case OpClass::normalize:
    case OpClass::reduction:
      return true;
    default:
      return false;
  }
}

bool widens(const Node& node) {
  return node.op->name == "cast" &&
         dtype_bytes(node.operands[0].type().dtype) < dtype_bytes(node.types[0].dtype);
}

// Casts that two loops and nothing else read.
std::unordered_set<const Node*> shared_casts(const Graph& graph) {
  const ConstantValues constants(graph);
  std::unordered_map<const Node*, std::unordered_set<const Node*>> readers;
  std::unordered_set<const Node*> kept;
  for (const auto& node : graph.nodes)
    for (const Value operand : node->operands) {
      if (!operand || !widens(*operand.node) || constants.contains(operand)) continue;
      if (is_loop(*node))
        readers[operand.node].insert(node.get());
      else
        kept.insert(operand.node);
    }
  for (const Value output : graph.outputs) kept.insert(output.node);
  for (const Mutation& mutation : graph.mutations) kept.insert(mutation.value.node);
  std::unordered_set<const Node*> shared;
  for (const auto& [cast, loops] : readers)
    if (loops.size() > 1 && kept.count(cast) == 0) shared.insert(cast);
  return shared;
}

Result<Changed> run_repeat_casts(Unit& unit, const PassOptions&, PassContext& context) {
  Graph& graph = unit.module.main();
  const std::unordered_set<const Node*> shared = shared_casts(graph);
  if (shared.empty()) return Changed::no;
  std::unordered_set<const Node*> taken;  // by the first who reads them
  const auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    std::unordered_map<const Node*, Value> own;
    for (Value& operand : node.operands) {
      if (!operand || shared.count(operand.node) == 0) continue;
      const Node& cast = *operand.node;
      if (const auto found = own.find(&cast); found != own.end()) {
        operand = found->second;
      } else if (!taken.insert(&cast).second) {
        operand = b.call("cast", {cast.operands[0]}, {{"dtype", cast.types[0].dtype}});
        context.counters["repeated"] += 1;
      }
      own[&cast] = operand;
    }
    if (b.failed()) return b.error();
    return Replacement();
  };
  LATHE_DO(rewrite(unit.module, graph, context.ops, "repeat_casts", visit));
  return Changed::yes;
}

}  // namespace

PassDef define_repeat_casts() {
  return {
      .name = "repeat_casts",
      .summary = "widen anew in each loop what one cast has widened for several",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"repeated"},
      .example = R"(
func @main(%x: bf16[4, 8]) -> f32[4, 8] {
  %0 = cast(%x) {dtype = f32}
  %1 = amax(%0) {dim = [1], keepdim = true}
  %2 = div(%0, %1)
  return %2
}
=>
func @main(%x: bf16[4, 8]) -> f32[4, 8] {
  %0 = cast(%x) {dtype = f32}
  %1 = amax(%0) {dim = [1], keepdim = true}
  %cast = cast(%x) {dtype = f32}
  %2 = div(%cast, %1)
  return %2
}
)",
      .run = run_repeat_casts,
  };
}

}  // namespace lathe
