// Numbers that are elements of tensors (x.item()). They stay tensors of rank 0: what takes a
// number takes them, and arithmetic on them becomes calls on tensors. Where the file makes a size
// of one, a node binds its symbol, and it is a size everywhere, with the range that the file has.
// What a graph asserts of such numbers is checked behind the run.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "frontend/import/graph_importer.h"
#include "ir/support/diag_codes.h"

namespace lathe {

using pt2::Argument;
using Tag = pt2::Argument::Tag;

namespace {

bool is_item(std::string_view target) {
  return target == "torch.ops.aten.item.default" ||
         target == "torch.ops.aten._local_scalar_dense.default";
}

// Python's operator on symbolic numbers, and the one on tensors.
struct ScalarCall {
  std::string_view python;
  std::string_view aten;
};
constexpr ScalarCall kScalarCalls[] = {
    {"_operator.add", "add.Tensor"},
    {"_operator.sub", "sub.Tensor"},
    {"_operator.mul", "mul.Tensor"},
    {"_operator.truediv", "div.Tensor"},
    {"_operator.floordiv", "floor_divide"},
    {"_operator.mod", "remainder.Tensor"},
    {"_operator.eq", "eq.Tensor"},
    {"_operator.ne", "ne.Tensor"},
    {"_operator.lt", "lt.Tensor"},
    {"_operator.le", "le.Tensor"},
    {"_operator.gt", "gt.Tensor"},
    {"_operator.ge", "ge.Tensor"},
    {"_operator.neg", "neg"},
    {"torch.sym_max", "maximum"},
    {"torch.sym_min", "minimum"},
};

const ScalarCall* tensor_target(std::string_view target) {
  const auto* row = std::find_if(std::begin(kScalarCalls), std::end(kScalarCalls),
                                 [&](const ScalarCall& call) { return call.python == target; });
  return row == std::end(kScalarCalls) ? nullptr : row;
}

// The name of a symbolic number; empty of anything else.
std::string symbolic_name(const Argument& arg) {
  switch (arg.tag) {
    case Tag::as_sym_int:
      return arg.as<pt2::SymArgument<int64_t>>().as_name.value_or("");
    case Tag::as_sym_float:
      return arg.as<pt2::SymArgument<double>>().as_name.value_or("");
    case Tag::as_sym_bool:
      return arg.as<pt2::SymArgument<bool>>().as_name.value_or("");
    default:
      return {};
  }
}

}  // namespace

bool is_size_of_tensor(const pt2::Node& node) {
  constexpr std::string_view kSizes[] = {
      "torch.ops.aten.sym_size.int", "torch.ops.aten.sym_numel.default",
      "torch.ops.aten.sym_stride.int", "torch.ops.aten.sym_storage_offset.default"};
  return std::find(std::begin(kSizes), std::end(kSizes), node.target) != std::end(kSizes);
}

Result<bool> GraphImporter::is_size(const pt2::Graph& graph, const std::string& symbol) {
  for (const auto& [name, meta] : graph.tensor_values) {
    for (const pt2::SymInt& size : meta.sizes) {
      if (!size.expr_str) continue;
      LATHE_TRY(const Dim dim, symbols_.dim(size));
      std::vector<std::string> names;
      dim.collect_symbols(names);
      if (std::find(names.begin(), names.end(), symbol) != names.end()) return true;
    }
  }
  return false;
}

bool is_scalar_call(const pt2::Node& node) {
  return is_item(node.target) || tensor_target(node.target) != nullptr;
}

// What is asserted of sizes is said by their ranges as well.
Result<bool> GraphImporter::import_data_assertion(const pt2::Node& node, Scope& scope) {
  if (node.target != "torch.ops.aten._assert_scalar.default" || node.inputs.empty() ||
      !scope.is_data(symbolic_name(node.inputs.front().arg)))
    return false;
  ImportCall call{.target = "_assert_async.msg", .name = call_name(node), .loc = builder_.loc()};
  for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 2); ++i) {
    LATHE_TRY(CallArg arg, scope.argument(node.inputs[i].arg));
    call.args.emplace_back(i == 0 ? "self" : "assert_msg", std::move(arg));
  }
  LATHE_DO(import_call(builder_, table_, std::move(call)));
  return true;
}

Result<bool> GraphImporter::import_data_scalar(const pt2::Node& node, Scope& scope) {
  LATHE_TRY(const bool is_assertion, import_data_assertion(node, scope));
  if (is_assertion) return true;
  if (node.outputs.size() != 1) return false;
  const std::string name = symbolic_name(node.outputs.front());
  if (name.empty()) return false;
  if (is_item(node.target) && node.inputs.size() == 1) {
    LATHE_TRY(CallArg arg, scope.argument(node.inputs.front().arg));
    const Value* value = std::get_if<Value>(&arg);
    if (value == nullptr || !*value || builder_.encoding(*value) != Encoding::none) return false;
    const Value number = builder_.call("reshape", {*value}, {{"shape", std::vector<int64_t>{}}});
    if (!number) return builder_.error();
    const auto size = scope.graph().sym_int_values.find(name);
    if (node.outputs.front().tag == Tag::as_sym_int && size != scope.graph().sym_int_values.end()) {
      LATHE_TRY(const Dim dim, symbols_.dim(size->second));
      LATHE_TRY(const bool is_in_sizes, is_size(scope.graph(), dim.symbol_name()));
      if (is_in_sizes && !dim.symbol_name().empty() && !is_bound(dim.symbol_name())) {
        const Value wide = builder_.call("cast", {number}, {{"dtype", DType::i64}});
        if (!builder_.call("bind_size", {wide}, {{"size", dim}})) return builder_.error();
        return true;
      }
    }
    scope.bind(name, number);
    return true;
  }
  const bool is_of_data = std::any_of(
      node.inputs.begin(), node.inputs.end(),
      [&](const pt2::NamedArgument& input) { return scope.is_data(symbolic_name(input.arg)); });
  if (!is_of_data) return false;
  const ScalarCall* row = tensor_target(node.target);
  if (row == nullptr || node.inputs.size() > 2)
    return Diag{code::kUnsupported, builder_.loc(),
                fmt::format("'{}' of a number that is an element of a tensor is not supported",
                            node.target)};
  ImportCall call{.target = std::string(row->aten), .name = call_name(node), .loc = builder_.loc()};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    LATHE_TRY(CallArg arg, scope.argument(node.inputs[i].arg));
    call.args.emplace_back(i == 0 ? "self" : "other", std::move(arg));
  }
  LATHE_TRY(std::vector<Value> results, import_call(builder_, table_, std::move(call)));
  scope.bind(name, results.front());
  return true;
}

}  // namespace lathe
