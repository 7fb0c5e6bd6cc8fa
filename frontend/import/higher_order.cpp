// Calls that carry graphs: regions, which run theirs once, torch.cond, which picks one of two, and
// map and scan, which run theirs for each row of their inputs.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

bool is_unrolled(const pt2::Node& node) {
  const std::string_view name = higher_order_name(node);
  return (name == "map_impl" || name == "scan") && graphs_of(node).size() == 1;
}

bool carries_graphs(const pt2::Node& node) {
  return is_region(node) || is_cond(node) || is_unrolled(node);
}

Result<std::vector<CallArg>> GraphImporter::inline_graph(const pt2::Node& node,
                                                         const pt2::Graph& graph, Scope& scope) {
  std::vector<CallArg> operands;
  for (const pt2::NamedArgument& input : node.inputs) {
    if (input.arg.tag == Tag::as_graph) continue;
    LATHE_TRY(std::vector<CallArg> elements, scope.elements(input.arg));
    for (CallArg& element : elements) operands.push_back(std::move(element));
  }
  return inline_graph(node, graph, std::move(operands), scope);
}

// The graph's inputs are the last operands.
Result<std::vector<CallArg>> GraphImporter::inline_graph(const pt2::Node& node,
                                                         const pt2::Graph& graph,
                                                         std::vector<CallArg> operands,
                                                         Scope& scope) {
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
    builder_.mark(chosen, builder_.encoding(*if_true));
    results.emplace_back(chosen);
  }
  return bind_outputs(node, results, scope);
}

// The same call once for each row: map(graph, rows, others) and scan(graph, first, rows, others),
// where the graph's first results are those of the next call's first operands.
Status GraphImporter::import_unrolled(const pt2::Node& node, Scope& scope) {
  constexpr size_t kMaxNodes = 16384;
  const pt2::Graph& graph = *graphs_of(node).front();
  std::vector<std::vector<CallArg>> operands;
  for (const pt2::NamedArgument& input : node.inputs) {
    if (input.arg.tag == Tag::as_graph) continue;
    LATHE_TRY(operands.emplace_back(), scope.elements(input.arg));
  }
  if (higher_order_name(node) == "map_impl") operands.insert(operands.begin(), {{}});
  const Value* first = nullptr;
  if (operands.size() == 3 && !operands[1].empty())
    first = std::get_if<Value>(&operands[1].front());
  if (first == nullptr || !*first || first->type().rank() == 0)
    return scope.broken(node.offset, fmt::format("'{}' is not of rows of tensors", node.target));
  const Dim& count = first->type().shape[0];
  if (!count.is_const() || count.value() < 1)
    return Diag{code::kUnsupported, builder_.loc(),
                fmt::format("'{}' of {} rows is not supported", node.target, count.str())};
  std::vector<CallArg> carried = operands[0];
  std::vector<std::vector<Value>> rows;
  for (int64_t i = 0; i < count.value(); ++i) {
    num_unrolled_ += graph.nodes.size() + 1;
    if (num_unrolled_ > kMaxNodes)
      return Diag{code::kTooLarge, builder_.loc(),
                  fmt::format("'{}' would become more than {} calls", node.target, kMaxNodes)};
    std::vector<CallArg> inputs = carried;
    for (const CallArg& input : operands[1]) {
      LATHE_TRY(inputs.emplace_back(), row_of(node, input, i, scope));
    }
    inputs.insert(inputs.end(), operands[2].begin(), operands[2].end());
    LATHE_TRY(std::vector<CallArg> results, inline_graph(node, graph, std::move(inputs), scope));
    if (results.size() < carried.size())
      return scope.broken(node.offset, fmt::format("the graph of '{}' has {} results, {} go on",
                                                   node.target, results.size(), carried.size()));
    std::copy_n(results.begin(), carried.size(), carried.begin());
    rows.resize(results.size() - carried.size());
    for (size_t k = 0; k < rows.size(); ++k) {
      const Value* value = std::get_if<Value>(&results[carried.size() + k]);
      if (value == nullptr || !*value)
        return Diag{code::kUnsupported, builder_.loc(),
                    fmt::format("a result of the graph of '{}' is no tensor", node.target)};
      rows[k].push_back(changed(*value, "unsqueeze", {{"dim", int64_t{0}}}));
    }
  }
  for (const std::vector<Value>& row : rows) {
    const int length = static_cast<int>(row.size());
    const Value joined = builder_.call_all("cat", row, {{"dim", int64_t{0}}}, {length}).front();
    builder_.mark(joined, builder_.encoding(row.front()));
    carried.emplace_back(joined);
  }
  if (builder_.failed()) return builder_.error();
  return bind_outputs(node, carried, scope);
}

Result<CallArg> GraphImporter::row_of(const pt2::Node& node, const CallArg& tensor, int64_t i,
                                      Scope& scope) {
  const Value* value = std::get_if<Value>(&tensor);
  if (value == nullptr || !*value)
    return scope.broken(node.offset, fmt::format("'{}' is of rows of no tensor", node.target));
  const Value row = changed(*value, "select", {{"dim", int64_t{0}}, {"index", i}});
  if (builder_.failed()) return builder_.error();
  return CallArg(row);
}

Value GraphImporter::changed(Value value, std::string_view op, NamedAttrs attrs) {
  const Value result = builder_.call(op, {value}, std::move(attrs));
  builder_.mark(result, builder_.encoding(value));
  return result;
}

}  // namespace lathe
