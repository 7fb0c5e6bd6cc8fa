// Turns the fused graph into a program: one launch of a loop kernel for each node that computes.
//
// Contractions go through the templates of ir/templates with the parameters of the target;
// everything else through the generic schedule. Views cost nothing: who reads one reads through it.
// What depends on weights and literals alone (packing, folded norms) becomes the program's init.
// Runs last on the graph; plan_memory then places the temporaries. Symbolic sizes stay in the
// program, with the guards: who runs it gives them values.
#include "passes/lowering/lowering.h"

#include <unordered_set>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr size_t kShown = 60;  // characters of a person's text in a message

// A weight that the run replaces is state: it comes in and goes out with every run, like a param,
// after the params. It keeps its name, which may be a param's as well.
void make_state_params(Graph& graph, const Registry& ops) {
  std::unordered_set<std::string> state;
  for (const Mutation& mutation : graph.mutations) {
    if (!mutation.is_input) state.insert(mutation.target);
  }
  if (state.empty()) return;
  for (auto& node : graph.nodes) {
    if (node->op->name != "constant" || node->is_none("name")) continue;
    const std::string weight = node->string_attr("name");
    if (state.count(weight) == 0) continue;
    auto param = std::make_unique<Node>();
    param->op = ops.find("param");
    param->attrs.resize(param->op->attrs.size());
    param->name = weight;
    param->types = node->types;
    param->loc = node->loc;
    graph.replace_uses(node->result(), param->result());
    graph.params.push_back(std::move(param));
  }
  graph.erase_dead();
}

// A program checks guards of the sizes that it is given.
Status check_guards(const std::vector<Guard>& guards, const Program& program) {
  for (const Guard& guard : guards) {
    std::vector<std::string> names;
    guard.left.collect_symbols(names);
    guard.right.collect_symbols(names);
    for (const std::string& name : names)
      if (program.symbols.count(name) == 0)
        return Diag{code::kUnsupported, guard.loc,
                    fmt::format("the guard '{}' is of sizes that nothing gives, and no program "
                                "checks it",
                                to_string(guard))};
  }
  return Ok{};
}

// "once" or "each".
Result<Repeats> read_repeats(const std::string& repeats) {
  if (repeats == "once") return Repeats::once;
  if (repeats == "each") return Repeats::each;
  return Diag{code::kBadValue, Loc::unknown(),
              fmt::format("'repeats' is 'once' or 'each', got '{}'", repeats.substr(0, kShown))};
}

Result<Changed> run_lower_to_loops(Unit& unit, const PassOptions& options, PassContext& context) {
  LATHE_TRY(const Repeats repeats, read_repeats(options.at("repeats")));
  Graph& graph = unit.module.main();
  const size_t num_inputs = graph.params.size();
  make_state_params(graph, context.ops);
  LATHE_TRY(unit.program, Lowering(unit.module, context, all_kernels()).run(num_inputs, repeats));
  LATHE_DO(check_guards(unit.module.guards, unit.program));
  unit.program.guards = unit.module.guards;
  context.counters["kernels"] = static_cast<int64_t>(unit.program.kernels.size());
  context.counters["launches"] = static_cast<int64_t>(unit.program.steps.size());
  return Changed::yes;
}

}  // namespace

PassDef define_lower_to_loops() {
  return {
      .name = "lower_to_loops",
      .summary = "turn every fused group into a loop kernel and the graph into a list of launches",
      .needs = Form::core,
      .leaves = Form::loops,
      .options = {{"repeats", "once",
                   "regions that are alike are lowered once, or each: the same"}},
      .counters = {"kernels", "launches"},
      .example = R"(
func @main(%x: f32[8, 4], %y: f32[8, 4]) -> f32[8, 4] {
  %0 = add(%x, %y)
  return %0
}
)",
      .run = run_lower_to_loops,
  };
}

}  // namespace lathe
