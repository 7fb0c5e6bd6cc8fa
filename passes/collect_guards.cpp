// Collects what the sizes of a graph must satisfy: the exporter's guards, and what ops demand of
// sizes that are symbols, each with the line that needs it.
//
// Before specialize_shapes, which checks guards where sizes get their values, and while the graph
// is still near its lines of Python. What ranges and other guards imply is dropped; what they
// contradict is an error at its line, and so is what the sizes at capture do not satisfy. `assume`
// adds what a person knows of sizes and ranges do not say ("s0*s1 <= 4096; s0 % 8 == 0"), before
// ops are asked. Does nothing without symbols. Does not ask why an op has its sizes: a size that
// data decides has no guard.
#include <algorithm>

#include "fmt/format.h"
#include "ir/support/lexer.h"
#include "ir/type/size_facts.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/symbols.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_collect_guards(Unit& unit, const PassOptions& options, PassContext& context);
WithoutGuard drop_assumption(PassOptions& options, const std::vector<Guard>& guards,
                             const Guard& guard);

}  // namespace

PassDef define_collect_guards() {
  return {
      .name = "collect_guards",
      .summary = "say what symbolic sizes must satisfy",
      .needs = Form::imported,
      .leaves = Form::imported,
      .options = {{"assume", "", "guards to add: \"s0*s1 <= 4096; s0 % 8 == 0\""}},
      .counters = {"assumed", "demanded", "implied"},
      .example = R"(
dim s0 in [1, 64]
dim s1 in [1, 32]
func @main(%x: f32[4, s0], %y: f32[2*s1, 8]) -> f32[4, 8] {
  %z = matmul(%x, %y)
  return %z
}
=>
dim s0 in [1, 64]
dim s1 in [1, 32]
guard s0 == 2*s1 because "'matmul' needs equal inner dims" by collect_guards
func @main(%x: f32[4, s0], %y: f32[2*s1, 8]) -> f32[4, 8] {
  %z = matmul(%x, %y)
  return %z
}
)",
      .run = run_collect_guards,
      .drop_guard = drop_assumption,
  };
}

namespace {

// Whatever sizes a caller gives, none is negative.
SizeFacts facts_of_params(const Module& module) {
  SizeFacts facts(module.dims, module.hints);
  for (const auto& param : module.main().params)
    for (const Dim& size : param->types.front().shape) facts.assume({size, Relation::ge, 0});
  return facts;
}

std::vector<Guard> demands_of(const Node& node) {
  std::vector<Guard> demands;
  if (node.op->demands != nullptr) demands = node.op->demands(node);
  for (const TensorType& type : node.types)
    for (const Dim& size : type.shape)
      if (!size.is_const())
        demands.push_back({0, Relation::le, size,
                           fmt::format("'{}' needs a size that is not negative", node.op->name)});
  return demands;
}

std::vector<std::string> spelled(const std::vector<Guard>& guards) {
  std::vector<std::string> texts;
  for (const Guard& guard : guards) texts.push_back(to_string(guard));
  return texts;
}

Result<std::vector<Guard>> parse_assumptions(const std::string& text, Module& module) {
  const std::vector<std::string> symbols = symbols_of(module);
  std::vector<Guard> guards;
  Lexer lexer(text, "assume", nullptr);
  while (!lexer.at_end()) {
    LATHE_TRY(Guard guard, parse_guard(lexer));
    std::vector<std::string> names;
    guard.left.collect_symbols(names);
    guard.right.collect_symbols(names);
    for (const std::string& name : names)
      if (std::find(symbols.begin(), symbols.end(), name) == symbols.end())
        return unknown_symbol("collect_guards", name, symbols);
    guard.cause = "assumed by the config";
    guard.pass = "collect_guards";
    guards.push_back(std::move(guard));
    if (!lexer.accept(";") && !lexer.at_end()) return lexer.expected("';' or the end");
  }
  return guards;
}

// "s0*s1 <= 4096; s0 % 8 == 0" without one of the two. What ops demand stays.
WithoutGuard drop_assumption(PassOptions& options, const std::vector<Guard>&, const Guard& guard) {
  std::string& assume = options["assume"];
  std::string left;
  bool is_there = false;
  Lexer lexer(assume, "assume", nullptr);
  while (!lexer.at_end()) {
    const Result<Guard> entry = parse_guard(lexer);
    if (!entry.ok()) return WithoutGuard::impossible;
    if (to_string(*entry) == to_string(guard))
      is_there = true;
    else
      left += (left.empty() ? "" : "; ") + to_string(*entry);
    lexer.accept(";");
  }
  if (!is_there) return WithoutGuard::impossible;
  assume = left;
  return WithoutGuard::other_options;
}

Result<Changed> run_collect_guards(Unit& unit, const PassOptions& options, PassContext& context) {
  Module& module = unit.module;
  LATHE_TRY(std::vector<Guard> assumptions, parse_assumptions(options.at("assume"), module));
  SizeFacts facts = facts_of_params(module);
  for (const Guard& guard : module.guards) LATHE_DO(facts.require(guard));
  context.counters["implied"] = static_cast<int64_t>(module.guards.size() - facts.guards().size());
  const size_t given = facts.guards().size();
  for (Guard& assumption : assumptions) LATHE_DO(facts.require(std::move(assumption)));
  const size_t known = facts.guards().size();
  context.counters["assumed"] = static_cast<int64_t>(known - given);
  for (const Graph* graph : all_graphs(module)) {
    for (const auto& node : graph->nodes) {
      for (Guard& demand : demands_of(*node)) {
        demand.loc = node->loc;
        demand.pass = "collect_guards";
        LATHE_DO(facts.require(std::move(demand)));
      }
    }
  }
  context.counters["demanded"] = static_cast<int64_t>(facts.guards().size() - known);
  const bool is_same = spelled(facts.guards()) == spelled(module.guards);
  module.guards = facts.guards();
  return is_same ? Changed::no : Changed::yes;
}

}  // namespace
}  // namespace lathe
