// Imports the calls of a graph. Its inputs and outputs are in graph_boundary.cpp, calls that carry
// graphs in higher_order.cpp.
#include "frontend/import/graph_importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "frontend/import/uses.h"
#include "ir/support/diag_codes.h"
#include "ir/type/size_facts.h"

namespace lathe {
namespace {

using pt2::Argument;
using Tag = pt2::Argument::Tag;

bool holds_tensors(Tag tag) {
  return tag == Tag::as_tensor || tag == Tag::as_tensors || tag == Tag::as_optional_tensor ||
         tag == Tag::as_optional_tensors || tag == Tag::as_nested_tensors || tag == Tag::as_graph ||
         tag == Tag::as_string_to_argument;
}

// The tensors of a call's outputs in order; nullopt for one that the call does not return.
Result<std::vector<std::optional<std::string>>> output_names(const pt2::Node& node, Scope& scope) {
  std::vector<std::optional<std::string>> names;
  for (const Argument& output : node.outputs) {
    if (output.tag == Tag::as_tensor) {
      names.emplace_back(output.as<std::string>());
    } else if (output.tag == Tag::as_tensors) {
      for (const std::string& name : output.as<std::vector<std::string>>())
        names.emplace_back(name);
    } else if (output.tag == Tag::as_optional_tensor || output.tag == Tag::as_optional_tensors) {
      for (const auto& name : output.as<std::vector<Argument::OptionalName>>())
        names.push_back(name);
    } else if (output.tag == Tag::as_none) {
      names.emplace_back();
    } else if (!is_scalar_tag(output.tag)) {
      return scope.broken(output.offset,
                          fmt::format("a call cannot return {}", pt2::tag_name(output.tag)));
    }
  }
  return names;
}

// "aten.relu.default"
std::string_view short_target(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (target.substr(0, kPrefix.size()) == kPrefix) target.remove_prefix(kPrefix.size());
  return target;
}

bool same_types(const TensorType& a, const TensorType& b, const Symbols& symbols) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i)
    if (!symbols.may_be_equal(a.shape[i], b.shape[i])) return false;
  return true;
}

}  // namespace

bool is_scalar_tag(Tag tag) {
  return tag == Tag::as_sym_int || tag == Tag::as_sym_float || tag == Tag::as_sym_bool ||
         tag == Tag::as_int || tag == Tag::as_float || tag == Tag::as_bool;
}

std::string call_name(const pt2::Node& node) {
  if (!node.name.empty()) return node.name;
  for (const Argument& output : node.outputs)
    if (output.tag == Tag::as_tensor) return output.as<std::string>();
  return {};
}

GraphImporter::GraphImporter(const json::Document& document, const pt2::ExportedProgram& program,
                             Symbols& symbols, const ImportTable& table, const Registry& ops,
                             std::vector<RefusedCall>* refused, ImportedModel& model)
    : document_(document),
      program_(program),
      symbols_(symbols),
      table_(table),
      refused_(refused),
      model_(model),
      stacks_(model.module.locs),
      builder_(model.module.main(), ops, Loc::unknown()),
      scope_(program.graph_module.graph, document, symbols, builder_, model.module) {}

Status GraphImporter::run() {
  collect_read_names(program_.graph_module.graph, read_names_);
  LATHE_DO(import_inputs());
  LATHE_DO(refused_ == nullptr ? check_supported() : refuse_unsupported());
  LATHE_DO(import_nodes(program_.graph_module.graph, scope_));
  return refused_ == nullptr ? import_outputs() : Ok{};
}

Loc GraphImporter::locate(const pt2::Node& node) {
  const pt2::NodeMetadata& metadata = node.metadata;
  return stacks_.locate({call_name(node), node.target, metadata.stack_trace,
                         metadata.nn_module_stack, metadata.from_node});
}

Result<bool> GraphImporter::is_symbolic(const pt2::Node& node, const pt2::Graph& graph) {
  if (node.outputs.empty()) {
    // An assertion about sizes; the ranges say the same.
    for (const pt2::NamedArgument& input : node.inputs)
      if (holds_tensors(input.arg.tag)) return false;
    return true;
  }
  for (const Argument& output : node.outputs)
    if (!is_scalar_tag(output.tag)) return false;
  if (is_size_of_tensor(node)) return true;
  // A size that the caller's arguments do not determine comes from a tensor's elements.
  for (const Argument& output : node.outputs) {
    if (output.tag != Tag::as_sym_int) continue;
    const auto& name = output.as<pt2::SymArgument<int64_t>>().as_name;
    auto value = graph.sym_int_values.find(name.value_or(""));
    if (value == graph.sym_int_values.end()) continue;
    LATHE_TRY(Dim size, symbols_.dim(value->second));
    std::vector<std::string> names;
    size.collect_symbols(names);
    for (const std::string& symbol : names)
      if (!symbols_.is_input_symbol(symbol) && !is_bound(symbol)) return false;
  }
  return true;
}

bool GraphImporter::is_bound(const std::string& symbol) {
  const std::vector<std::string> bound = builder_.graph().bound_symbols();
  return std::find(bound.begin(), bound.end(), symbol) != bound.end();
}

Status GraphImporter::import_nodes(const pt2::Graph& graph, Scope& scope) {
  for (const pt2::Node& node : graph.nodes) {
    builder_.set_loc(locate(node));
    LATHE_TRY(bool is_done, import_data_scalar(node, scope));
    if (is_done) continue;
    LATHE_TRY(bool skips, is_symbolic(node, graph));
    if (skips) continue;
    if (&scope == &scope_ && is_refused(node)) {
      LATHE_DO(import_refused(node, scope));
      continue;
    }
    Status status = import_node(node, scope);
    if (status.ok()) continue;
    if (refused_ != nullptr && &scope == &scope_)
      refused_->push_back({call_name(node), std::string(short_target(node.target)),
                           status.error().message, status.error().code});
    return status;
  }
  return Ok{};
}

Status GraphImporter::import_node(const pt2::Node& node, Scope& scope) {
  return is_region(node)     ? import_region(node, scope)
         : is_cond(node)     ? import_cond(node, scope)
         : is_unrolled(node) ? import_unrolled(node, scope)
                             : import_call_node(node, scope);
}

bool GraphImporter::is_refused(const pt2::Node& node) const {
  if (refused_ == nullptr) return false;
  const std::string name = call_name(node);
  return std::any_of(refused_->begin(), refused_->end(),
                     [&](const RefusedCall& refusal) { return refusal.node == name; });
}

// What it gives comes from elsewhere. A result of which the file says no type that Lathe has cannot
// be used here.
Status GraphImporter::import_refused(const pt2::Node& node, Scope& scope) {
  LATHE_TRY(auto names, output_names(node, scope));
  for (const auto& name : names) {
    if (!name) continue;
    Result<std::optional<TensorType>> type = scope.expected_type(*name);
    const bool is_known = type.ok() && type->has_value();
    const Value value = is_known ? builder_.param(**std::move(type), *name) : Value();
    builder_.mark(value, scope.encoding(*name));
    scope.bind(*name, value);
  }
  return builder_.failed() ? Status(Diag(builder_.error())) : Ok{};
}

Status GraphImporter::import_call_node(const pt2::Node& node, Scope& scope) {
  ImportCall call;
  call.target = node.target;
  call.name = call_name(node);
  call.loc = builder_.loc();
  bool is_placed = false;
  for (const pt2::NamedArgument& input : node.inputs) {
    LATHE_TRY(CallArg arg, scope.argument(input.arg));
    call.args.emplace_back(input.name, std::move(arg));
    if (is_placed || input.arg.tag != Tag::as_tensor) continue;
    LATHE_TRY(call.placement, scope.placement(input.arg.as<std::string>()));
    is_placed = true;
  }
  LATHE_TRY(auto names, output_names(node, scope));
  for (const auto& name : names) call.used.push_back(name && read_names_.contains(*name));
  for (const auto& name : names) {
    // Types are given as far as every result has one.
    if (!name) break;
    LATHE_TRY(std::optional<TensorType> type, scope.expected_type(*name));
    if (!type) break;
    call.expected.push_back(*std::move(type));
  }
  LATHE_DO(apply_autocast(call));
  auto results = import_call(builder_, table_, std::move(call));
  if (!results.ok()) {
    Diag diag = std::move(results).error();
    if (diag.loc.is_unknown()) diag.loc = builder_.loc();
    return diag;
  }
  return bind_outputs(node, {results->begin(), results->end()}, scope);
}

Status GraphImporter::bind_outputs(const pt2::Node& node, const std::vector<CallArg>& results,
                                   Scope& scope) {
  LATHE_TRY(auto names, output_names(node, scope));
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i]) continue;
    if (i >= results.size())
      return Diag{code::kBadModel, builder_.loc(),
                  fmt::format("the file lists {} results of '{}', it has {}", names.size(),
                              node.target, results.size())};
    CallArg result = results[i];
    if (auto* value = std::get_if<Value>(&result); value && *value) {
      LATHE_TRY(*value, in_sizes_of_file(node, *names[i], *value, scope));
    }
    scope.bind(*names[i], std::move(result));
  }
  return Ok{};
}

// Rows know no ranges, the exporter does: Min(64, s0) is s0 for it, where s0 is at most 64.
Result<Value> GraphImporter::in_sizes_of_file(const pt2::Node& node, const std::string& name,
                                              Value value, Scope& scope) {
  LATHE_TRY(std::optional<TensorType> expected, scope.expected_type(name));
  if (!expected) return value;
  const ImportTable::Match match = table_.find(node.target);
  const Shape& shape = value.type().shape;
  const Encoding encoding = builder_.encoding(value);
  if (match && match.entry->import->has_own_types) {
    expected->dtype = value.type().dtype;
    if (!same_types(value.type(), *expected, symbols_)) return value;
  }
  if (!same_types(value.type(), *expected, symbols_) || encoding != scope.encoding(name))
    return Diag{code::kTypeMismatch, builder_.loc(),
                fmt::format("'{}' is {} in the file, but '{}' of its arguments is {}", name,
                            to_string(*expected), node.target, to_string(value.type()))};
  if (shape == expected->shape || value.node->in_place) return value;
  const SizeFacts facts(model_.module.dims);
  for (size_t d = 0; d < shape.size(); ++d)
    if (facts.decide(Relation::eq, shape[d], expected->shape[d]) != true) return value;
  const Value result = builder_.call("reshape", {value}, {{"shape", expected->shape}});
  if (!result) return builder_.error();
  builder_.mark(result, encoding);
  return result;
}

bool GraphImporter::is_imported(std::string_view target) const {
  return std::any_of(std::begin(kNumberKinds), std::end(kNumberKinds),
                     [&](NumberKind numbers) { return bool(table_.find(target, numbers)); });
}

Status GraphImporter::find_unsupported(const pt2::Graph& graph,
                                       std::map<std::string_view, Unsupported>& found) {
  for (const pt2::Node& node : graph.nodes) {
    LATHE_TRY(bool skips, is_symbolic(node, graph));
    if (skips || is_scalar_call(node) || is_imported(node.target)) continue;
    if (carries_graphs(node)) {
      for (const pt2::Graph* inner : graphs_of(node)) LATHE_DO(find_unsupported(*inner, found));
      continue;
    }
    auto [row, is_new] = found.try_emplace(node.target);
    if (is_new) row->second = {node.target, 0, found.size(), locate(node)};
    ++row->second.uses;
  }
  return Ok{};
}

Status GraphImporter::refuse_unsupported() {
  for (const pt2::Node& node : program_.graph_module.graph.nodes) {
    LATHE_TRY(bool skips, is_symbolic(node, program_.graph_module.graph));
    if (skips || is_scalar_call(node) || is_refused(node)) continue;
    std::map<std::string_view, Unsupported> found;
    if (carries_graphs(node)) {
      for (const pt2::Graph* inner : graphs_of(node)) LATHE_DO(find_unsupported(*inner, found));
    } else if (!is_imported(node.target)) {
      found[node.target] = {node.target};
    }
    if (found.empty()) continue;
    const std::string_view target = short_target(node.target);
    const std::string_view missing = short_target(found.begin()->second.target);
    refused_->push_back({call_name(node), std::string(target),
                         fmt::format("Lathe has no op for '{}'", missing), code::kUnsupportedOp});
  }
  return Ok{};
}

std::string GraphImporter::unsupported_row(const Unsupported& op, size_t width) const {
  const LocTable& locs = model_.module.locs;
  std::string row = fmt::format("{:<{}}  {} {} first at ", short_target(op.target), width, op.uses,
                                op.uses == 1 ? "use, " : "uses,");
  const LocRow& loc = locs[locs.origin(op.first)];
  int32_t frame = locs.user_frame(loc.frame);
  if (frame < 0) return row + "node " + loc.fx_node;
  const Frame& place = locs.frame(frame);
  row += fmt::format("{}:{}", place.file, place.line);
  return place.code.empty() ? row : row + "  " + place.code;
}

Status GraphImporter::check_supported() {
  constexpr size_t kMaxRows = 200;
  std::map<std::string_view, Unsupported> found;
  LATHE_DO(find_unsupported(program_.graph_module.graph, found));
  if (found.empty()) return Ok{};
  std::vector<Unsupported> ops;
  for (auto& [target, op] : found) ops.push_back(std::move(op));
  std::sort(ops.begin(), ops.end(), [](const Unsupported& a, const Unsupported& b) {
    return a.uses != b.uses ? a.uses > b.uses : a.order < b.order;
  });
  Diag diag{code::kUnsupportedOp, model_.module.locs.text(model_.file, 0, 0),
            ops.size() == 1 ? "1 op of this model is not supported"
                            : fmt::format("{} ops of this model are not supported", ops.size())};
  const size_t shown = std::min(ops.size(), kMaxRows);
  size_t width = 0;
  for (size_t i = 0; i < shown; ++i) width = std::max(width, short_target(ops[i].target).size());
  for (size_t i = 0; i < shown; ++i) diag.rows.push_back(unsupported_row(ops[i], width));
  if (shown < ops.size()) diag.rows.push_back(fmt::format("and {} more", ops.size() - shown));
  return diag;
}

}  // namespace lathe
