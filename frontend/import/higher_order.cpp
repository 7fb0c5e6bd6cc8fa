// Calls that carry graphs: regions, which run theirs once, and torch.cond, which picks one of two.
#include <fmt/format.h>

#include "frontend/import/graph_importer.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using pt2::Argument;
using Tag = pt2::Argument::Tag;

constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";
constexpr std::string_view kAutocast = "wrap_with_autocast";

// "cond" of "torch.ops.higher_order.cond"; empty for other targets.
std::string_view higher_order_name(const pt2::Node& node) {
  const std::string_view target = node.target;
  if (target.substr(0, kHigherOrder.size()) != kHigherOrder) return {};
  return target.substr(kHigherOrder.size());
}

// wrap_with_autocast(device type, dtype, enabled, caches casts, graph, operands...)
bool is_disabled_autocast(const pt2::Node& node) {
  constexpr size_t kEnabled = 2;
  if (node.inputs.size() <= kEnabled) return false;
  const Argument& enabled = node.inputs[kEnabled].arg;
  return enabled.tag == Tag::as_bool && !enabled.as<bool>();
}

// The dtype of the region; nullopt when it has none, or one that Lathe has not.
std::optional<DType> autocast_dtype(const pt2::Node& node) {
  constexpr size_t kDtype = 1;
  if (node.inputs.size() <= kDtype) return std::nullopt;
  const Argument& dtype = node.inputs[kDtype].arg;
  return dtype.tag == Tag::as_scalar_type ? dtype_of(dtype.as<int64_t>()) : std::nullopt;
}

}  // namespace

std::vector<const pt2::Graph*> graphs_of(const pt2::Node& node) {
  std::vector<const pt2::Graph*> graphs;
  for (const pt2::NamedArgument& input : node.inputs)
    if (input.arg.tag == Tag::as_graph)
      graphs.push_back(input.arg.as<pt2::GraphArgument>().graph.get());
  return graphs;
}

bool is_region(const pt2::Node& node) {
  const std::string_view name = higher_order_name(node);
  const bool is_wrapper = name.substr(0, 5) == "wrap_" || name == "wrap" ||
                          name == "tag_activation_checkpoint" || name == "invoke_subgraph" ||
                          name == "strict_mode" || name == "hints_wrapper";
  return is_wrapper && graphs_of(node).size() == 1;
}

bool is_cond(const pt2::Node& node) {
  return higher_order_name(node) == "cond" && graphs_of(node).size() == 2;
}

// The graph's inputs are the last operands of the call.
Result<std::vector<CallArg>> GraphImporter::inline_graph(const pt2::Node& node,
                                                         const pt2::Graph& graph, Scope& scope) {
  std::vector<CallArg> operands;
  for (const pt2::NamedArgument& input : node.inputs) {
    if (input.arg.tag == Tag::as_graph) continue;
    LATHE_TRY(std::vector<CallArg> elements, scope.elements(input.arg));
    for (CallArg& element : elements) operands.push_back(std::move(element));
  }
  if (operands.size() < graph.inputs.size())
    return scope.broken(
        node.offset, fmt::format("'{}' gives {} operands to a graph of {} inputs", call_name(node),
                                 operands.size(), graph.inputs.size()));
  const size_t first = operands.size() - graph.inputs.size();
  Scope inner(graph, document_, symbols_, builder_, model_.module);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Argument& input = graph.inputs[i];
    if (input.tag == Tag::as_tensor)
      inner.bind(input.as<std::string>(), std::move(operands[first + i]));
  }
  LATHE_DO(import_nodes(graph, inner));
  std::vector<CallArg> results;
  for (const Argument& output : graph.outputs) {
    if (is_scalar_tag(output.tag)) continue;
    LATHE_TRY(std::vector<CallArg> elements, inner.elements(output));
    for (CallArg& element : elements) results.push_back(std::move(element));
  }
  builder_.set_loc(locate(node));
  return results;
}

// Inside a region of autocast its calls are cast as it says; a region in it may say otherwise.
Status GraphImporter::import_region(const pt2::Node& node, Scope& scope) {
  const std::optional<DType> outside = autocast_;
  if (higher_order_name(node) == kAutocast) {
    autocast_ = is_disabled_autocast(node) ? std::nullopt : autocast_dtype(node);
    if (!autocast_ && !is_disabled_autocast(node))
      return Diag{code::kUnsupported, builder_.loc(),
                  "this is a torch.autocast region without a dtype that Lathe has"};
  }
  Result<std::vector<CallArg>> results = inline_graph(node, *graphs_of(node).front(), scope);
  autocast_ = outside;
  if (!results.ok()) return std::move(results).error();
  return bind_outputs(node, *results, scope);
}

// Both branches are computed and each result is chosen: a program has no control flow, and branches
// of torch.cond are pure and agree in their shapes.
Status GraphImporter::import_cond(const pt2::Node& node, Scope& scope) {
  LATHE_TRY(CallArg condition, scope.argument(node.inputs.front().arg));
  const Value* chooser = std::get_if<Value>(&condition);
  if (chooser == nullptr || !*chooser || chooser->type().dtype != DType::b8)
    return Diag{code::kUnsupported, builder_.loc(),
                "torch.cond chooses by a tensor of one bool here, not by a size"};
  std::vector<std::vector<CallArg>> branches;
  for (const pt2::Graph* branch : graphs_of(node)) {
    LATHE_TRY(std::vector<CallArg> results, inline_graph(node, *branch, scope));
    branches.push_back(std::move(results));
  }
  if (branches[0].size() != branches[1].size())
    return scope.broken(node.offset,
                        fmt::format("the branches of '{}' have {} and {} results", call_name(node),
                                    branches[0].size(), branches[1].size()));
  std::vector<CallArg> results;
  for (size_t i = 0; i < branches[0].size(); ++i) {
    const Value* if_true = std::get_if<Value>(&branches[0][i]);
    const Value* if_false = std::get_if<Value>(&branches[1][i]);
    if (if_true == nullptr || if_false == nullptr || !*if_true || !*if_false)
      return Diag{code::kUnsupported, builder_.loc(),
                  fmt::format("result {} of torch.cond is not a tensor in both branches", i)};
    const Value chosen = builder_.call("where", {*chooser, *if_true, *if_false});
    if (builder_.failed()) return builder_.error();
    if (builder_.is_complex(*if_true)) builder_.mark_complex(chosen);
    results.emplace_back(chosen);
  }
  return bind_outputs(node, results, scope);
}

}  // namespace lathe
