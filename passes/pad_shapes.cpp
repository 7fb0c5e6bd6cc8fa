// Rounds symbolic sizes up: inputs are padded with zeros, what must not see padding is masked, and
// outputs are cropped. So kernels meet few sizes, at the price of what they compute for nothing.
//
// Before fusion, while every op is by itself, and after drop_noops; what collect_guards knows holds
// for sizes as they are given, not as they are padded. `sizes` says to what: "8" rounds every
// symbol to a multiple of 8, "s0=8" one, and "s0=64|128|256" to the next of these sizes, beyond the
// last of which the graph takes none.
//
// Each op is padded by a rule for what it does (passes/padding), or taken apart into ops that have
// one. Where neither shows that elements and padding stay apart, the pass refuses, with the op that
// stands in the way.
#include <algorithm>
#include <cstdlib>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "ir/type/size_facts.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/symbols.h"
#include "passes/padding/padding.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_pad_shapes(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_pad_shapes() {
  return {
      .name = "pad_shapes",
      .summary = "round symbolic sizes up, and keep padding out of results",
      .needs = Form::functional,
      .leaves = Form::functional,
      .options = {{"sizes", "8", "a multiple for all, or by name: s0=8,s1=64|128|256"}},
      .counters = {"padded", "masks"},
      .example = R"(
dim s0 in [1, 64]
func @main(%x: f32[s0, 4]) -> f32[s0, 4] {
  %y = relu(%x)
  return %y
}
=>
dim s0 in [1, 64]
func @main(%x: f32[s0, 4]) -> f32[s0, 4] {
  %padded = pad(%x) {pad = [0, 0, 0, 8*((s0 + 7)//8) - s0]}
  %y = relu(%padded)
  %cropped = pad(%y) {pad = [0, 0, 0, s0 - 8*((s0 + 7)//8)]}
  return %cropped
}
)",
      .run = run_pad_shapes,
  };
}

namespace {

// --- sizes

Diag bad_sizes(std::string message) {
  return {code::kBadValue, Loc::unknown(), "pad_shapes: " + message};
}

std::vector<std::string> parts_of(const std::string& text, char mark) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(mark, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// One multiple, or ascending buckets.
Result<std::vector<int64_t>> parse_counts(const std::string& text) {
  std::vector<int64_t> counts;
  for (const std::string& part : parts_of(text, '|')) {
    char* rest = nullptr;
    const int64_t count = std::strtoll(part.c_str(), &rest, 10);
    if (part.empty() || *rest != '\0' || count < 1 || count > INT32_MAX)
      return bad_sizes(fmt::format("expected a size of at least 1, got '{}'", part));
    if (!counts.empty() && count <= counts.back())
      return bad_sizes(fmt::format("expected ascending sizes, got '{}'", text));
    counts.push_back(count);
  }
  return counts;
}

Dim rounded(const Dim& symbol, const std::vector<int64_t>& counts) {
  if (counts.size() == 1) return counts[0] * Dim::floor_div(symbol + (counts[0] - 1), counts[0]);
  // The first, and from each to the next once the symbol is beyond it.
  Dim size = counts[0];
  for (size_t i = 1; i < counts.size(); ++i)
    size = size + (counts[i] - counts[i - 1]) * Dim::min(Dim::max(symbol - counts[i - 1], 0), 1);
  return size;
}

Result<std::map<std::string, std::vector<int64_t>>> parse_sizes(const std::string& text,
                                                                Module& module) {
  const std::vector<std::string> symbols = symbols_of(module);
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const std::string& item : parts_of(text, ',')) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos) {
      LATHE_TRY(const std::vector<int64_t> counts, parse_counts(item));
      for (const std::string& name : symbols) sizes.emplace(name, counts);
      continue;
    }
    const std::string name = item.substr(0, equals);
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end())
      return unknown_symbol("pad_shapes", name, symbols);
    LATHE_TRY(sizes[name], parse_counts(item.substr(equals + 1)));
  }
  return sizes;
}

// No size is beyond the last of its buckets.
Status guard_buckets(Module& module, const std::map<std::string, std::vector<int64_t>>& sizes) {
  SizeFacts facts(module.dims, module.hints);
  for (const Guard& guard : module.guards) LATHE_DO(facts.require(guard));
  for (const auto& [name, counts] : sizes) {
    if (counts.size() == 1) continue;  // a multiple is never the last
    Guard guard{Dim::symbol(name), Relation::le, counts.back(), "it is the last of its buckets"};
    guard.pass = "pad_shapes";
    LATHE_DO(facts.require(std::move(guard)));
  }
  module.guards = facts.guards();
  return Ok{};
}

// --- edges of the graph

Status enter_params(Module& module, Graph& graph, Padding& padding) {
  Builder& b = padding.builder();
  const Loc loc = b.loc();
  for (const auto& param : graph.params) {
    const Value value = param->result();
    if (!padding.rounding().changes(value.type().shape)) continue;
    LATHE_DO(padding.check_room(*param, value.type().shape));
    b.set_loc(module.locs.derive("pad_shapes", {param->loc}));
    padding.know(value, padding.enter(value));
  }
  b.set_loc(loc);
  return Ok{};
}

Status leave_results(Module& module, Graph& graph, const Registry& ops, Padding& padding) {
  Builder b(graph, ops, Loc::unknown());
  padding.set_builder(b);
  std::map<Value, Value> cropped;
  const auto leave = [&](Value& result) {
    const Padded* padded = padding.find(result);
    if (padded == nullptr || !padding.is_padded(*padded) || padded->value != result) return;
    Value& own = cropped[result];
    b.set_loc(module.locs.derive("pad_shapes", {result.node->loc}));
    if (!own) own = padding.leave(*padded);
    result = own;
  };
  for (Value& output : graph.outputs) leave(output);
  for (Mutation& mutation : graph.mutations) leave(mutation.value);
  if (b.failed()) return b.error();
  return Ok{};
}

bool has_inputs_of(const Rounding& rounding, const Graph& graph) {
  return !graph.nodes.empty() &&
         std::any_of(graph.params.begin(), graph.params.end(), [&](const auto& param) {
           return rounding.changes(param->types.front().shape);
         });
}

Result<Changed> run_pad_shapes(Unit& unit, const PassOptions& options, PassContext& context) {
  Module& module = unit.module;
  Graph& graph = module.main();
  LATHE_TRY(const auto sizes, parse_sizes(options.at("sizes"), module));
  std::map<std::string, Dim> symbols;
  for (const auto& [name, counts] : sizes)
    symbols.emplace(name, rounded(Dim::symbol(name), counts));
  Padding padding{Rounding(symbols)};
  if (!has_inputs_of(padding.rounding(), graph)) return Changed::no;
  LATHE_DO(guard_buckets(module, sizes));
  bool is_entered = false;
  const auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
    padding.set_builder(b);
    if (!is_entered) LATHE_DO(enter_params(module, graph, padding));
    is_entered = true;
    if (!padding.concerns(node)) return Replacement();
    LATHE_TRY(const std::vector<Padded> results, pad_node(padding, node));
    std::vector<Value> values;
    for (const Padded& result : results) {
      values.push_back(result.value);
      if (padding.is_padded(result)) padding.know(result.value, result);
    }
    return Replacement(std::move(values));
  };
  LATHE_DO(rewrite(module, graph, context.ops, "pad_shapes", visit));
  LATHE_DO(leave_results(module, graph, context.ops, padding));
  context.counters["padded"] = static_cast<int64_t>(symbols.size());
  context.counters["masks"] = padding.num_masks();
  return Changed::yes;
}

}  // namespace
}  // namespace lathe
