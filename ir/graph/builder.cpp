// Building checked, typed nodes.
#include "ir/graph/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "ir/graph/tensor.h"
#include "ir/graph/text.h"
#include "ir/support/diag_codes.h"
#include "ir/support/lexer.h"

namespace lathe {
namespace {

Diag diag(const char* code, std::string message) {
  return Diag{code, Loc::unknown(), std::move(message)};
}

std::string_view kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean:
      return "true or false";
    case AttrKind::integer:
      return "an integer";
    case AttrKind::number:
      return "a number";
    case AttrKind::string:
      return "a string";
    case AttrKind::dtype:
      return "a dtype";
    case AttrKind::dim:
      return "a size";
    case AttrKind::ints:
      return "a list of integers";
    case AttrKind::numbers:
      return "a list of numbers";
    case AttrKind::dims:
      return "a list of sizes";
    case AttrKind::bools:
      return "a list of true and false";
    case AttrKind::layout:
      return "a layout";
  }
  return "a value";
}

// The conversions that lose nothing, one overload for each pair of kinds; nullopt: none.
template <class To>
std::optional<Attr> convert(const Attr& value);

template <>
std::optional<Attr> convert<int64_t>(const Attr& value) {
  if (const bool* boolean = std::get_if<bool>(&value)) return Attr(int64_t{*boolean});
  const Dim* dim = std::get_if<Dim>(&value);
  if (dim != nullptr && dim->is_const()) return Attr(dim->value());
  return std::nullopt;
}

template <>
std::optional<Attr> convert<double>(const Attr& value) {
  if (const auto* integer = std::get_if<int64_t>(&value))
    return is_exact_in_double(*integer) ? Attr(static_cast<double>(*integer)) : value;
  if (const bool* boolean = std::get_if<bool>(&value)) return Attr(*boolean ? 1.0 : 0.0);
  return std::nullopt;
}

template <>
std::optional<Attr> convert<Dim>(const Attr& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return Attr(Dim(*integer));
  return std::nullopt;
}

// Lists convert when every element does; an empty list converts to any kind.
template <class To, class From>
std::optional<Attr> convert_list(const std::vector<From>& from) {
  std::vector<To> result;
  for (const From& element : from) {
    if constexpr (std::is_same_v<From, Dim>) {
      if (!element.is_const()) return std::nullopt;
      result.push_back(static_cast<To>(element.value()));
    } else {
      result.push_back(static_cast<To>(element));
    }
  }
  return Attr(std::move(result));
}

template <class To>
std::optional<Attr> convert_ints(const Attr& value) {
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    const bool is_lossy = std::is_same_v<To, double> &&
                          !std::all_of(integers->begin(), integers->end(), is_exact_in_double);
    return is_lossy ? value : convert_list<To>(*integers);
  }
  if constexpr (!std::is_same_v<To, Dim>)
    if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) return convert_list<To>(*dims);
  return std::nullopt;
}

std::optional<Attr> convert_bools(const Attr& value) {
  const auto* integers = std::get_if<std::vector<int64_t>>(&value);
  if (integers != nullptr && integers->empty()) return Attr(std::vector<bool>());
  return std::nullopt;
}

template <class T>
std::optional<Attr> keep(const Attr& value) {
  if (std::holds_alternative<T>(value)) return value;
  return std::nullopt;
}

template <class T>
std::optional<Attr> keep_or(const Attr& value, std::optional<Attr> (*otherwise)(const Attr&)) {
  return std::holds_alternative<T>(value) ? std::optional<Attr>(value) : otherwise(value);
}

std::optional<Attr> convert_to(AttrKind kind, const Attr& value) {
  switch (kind) {
    case AttrKind::boolean:
      return keep<bool>(value);
    case AttrKind::integer:
      return keep_or<int64_t>(value, convert<int64_t>);
    case AttrKind::number:
      return keep_or<double>(value, convert<double>);
    case AttrKind::string:
      return keep<std::string>(value);
    case AttrKind::dtype:
      return keep<DType>(value);
    case AttrKind::dim:
      return keep_or<Dim>(value, convert<Dim>);
    case AttrKind::ints:
      return keep_or<std::vector<int64_t>>(value, convert_ints<int64_t>);
    case AttrKind::numbers:
      return keep_or<std::vector<double>>(value, convert_ints<double>);
    case AttrKind::dims:
      return keep_or<std::vector<Dim>>(value, convert_ints<Dim>);
    case AttrKind::bools:
      return keep_or<std::vector<bool>>(value, convert_bools);
    case AttrKind::layout:
      return keep_or<Layout>(value, convert_ints<int>);
  }
  return std::nullopt;
}

}  // namespace

Result<Attr> convert_attr(const OpDef& op, const AttrSpec& spec, Attr value) {
  if (std::holds_alternative<std::monostate>(value)) {
    if (spec.is_optional) return value;
  } else if (auto converted = convert_to(spec.kind, value)) {
    return *std::move(converted);
  }
  return diag(code::kAttribute, fmt::format("attribute '{}' of '{}' must be {}, got {}", spec.name,
                                            op.name, kind_name(spec.kind), print(value)));
}

std::string unique_name(const Graph& graph, const std::string& hint) {
  auto& index = graph.name_index;
  if (index.size() < graph.params.size() + graph.nodes.size()) {
    for (const auto& param : graph.params) index.try_emplace(param->name, 1);
    for (const auto& node : graph.nodes) index.try_emplace(node->name, 1);
  }
  const std::string base = as_name(hint);
  const auto [entry, is_new] = index.try_emplace(base, 1);
  if (is_new) return base;
  int& next = entry->second;  // references stay valid when the map grows
  for (;;) {
    std::string name = fmt::format("{}_{}", base, next++);
    if (index.try_emplace(name, 1).second) return name;
  }
}

Value Builder::call(std::string_view op, std::vector<Value> operands, NamedAttrs attrs) {
  const std::vector<Value> results = call_all(op, std::move(operands), std::move(attrs));
  return results.empty() ? Value{} : results.front();
}

std::vector<Value> Builder::call_all(std::string_view op, std::vector<Value> operands,
                                     NamedAttrs attrs, std::vector<int> list_sizes) {
  if (failed_) return {};
  const OpDef* row = ops_.find(op);
  if (row == nullptr) {
    fail(unknown_op(ops_, op));
    return {};
  }
  Node* node = create(*row, std::move(operands), std::move(list_sizes), std::move(attrs));
  std::vector<Value> results;
  if (node == nullptr) return results;
  for (size_t i = 0; i < node->types.size(); ++i)
    results.push_back(node->result(static_cast<int>(i)));
  return results;
}

// Completes operands and list sizes, and checks them against the row.
Status Builder::check_operands(const OpDef& op, std::vector<Value>& operands,
                               std::vector<int>& list_sizes) const {
  size_t num_lists = 0;
  for (const OperandSpec& spec : op.operands) num_lists += spec.is_list() ? 1 : 0;
  const size_t num_single = op.operands.size() - num_lists;
  if (num_lists == 1 && list_sizes.empty() && operands.size() >= num_single)
    list_sizes.push_back(static_cast<int>(operands.size() - num_single));
  if (list_sizes.size() != num_lists)
    return diag(code::kOperandCount, fmt::format("'{}' takes {} lists of operands, got {}", op.name,
                                                 num_lists, list_sizes.size()));
  size_t position = 0;
  size_t list = 0;
  for (const OperandSpec& spec : op.operands) {
    if (spec.is_list() && list_sizes[list] < 0)
      return diag(code::kOperandCount, fmt::format("'{}' got a negative list size", op.name));
    const size_t count = spec.is_list() ? static_cast<size_t>(list_sizes[list++]) : 1;
    for (size_t i = 0; i < count; ++i, ++position) {
      if (position == operands.size() && spec.is_optional()) operands.push_back({});
      if (position >= operands.size() || (!operands[position] && !spec.is_optional()))
        return diag(code::kOperandCount,
                    fmt::format("'{}' needs its operand '{}'", op.name, spec.name));
      const Value value = operands[position];
      if (value &&
          (value.index < 0 || static_cast<size_t>(value.index) >= value.node->types.size()))
        return diag(
            code::kOperandCount,
            fmt::format("operand '{}' of '{}' is result {} of '{}', which has {}", spec.name,
                        op.name, value.index, value.node->name, value.node->types.size()));
    }
  }
  if (position != operands.size())
    return diag(code::kOperandCount,
                fmt::format("'{}' takes {} operands, got {}", op.name, position, operands.size()));
  return Ok{};
}

Result<std::vector<Attr>> Builder::fill_attrs(const OpDef& op, NamedAttrs attrs) const {
  std::vector<Attr> result;
  std::vector<bool> is_given(op.attrs.size(), false);
  for (const AttrSpec& spec : op.attrs) result.push_back(spec.default_value);
  for (auto& [attr_name, value] : attrs) {
    const int i = op.attr_index(attr_name);
    if (i < 0) {
      std::vector<std::string> names;
      for (const AttrSpec& spec : op.attrs) names.push_back(spec.name);
      std::string message = fmt::format("'{}' has no attribute '{}'", op.name, attr_name);
      if (std::string near = nearest(attr_name, names); !near.empty())
        message += fmt::format("; did you mean '{}'?", near);
      return diag(code::kAttribute, message);
    }
    const size_t position = static_cast<size_t>(i);
    if (is_given[position])
      return diag(code::kAttribute,
                  fmt::format("attribute '{}' of '{}' is given twice", attr_name, op.name));
    is_given[position] = true;
    LATHE_TRY(result[position], convert_attr(op, op.attrs[position], std::move(value)));
  }
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const AttrSpec& spec = op.attrs[i];
    if (is_given[i]) continue;
    if (std::holds_alternative<std::monostate>(spec.default_value)) {
      if (!spec.is_optional)
        return diag(code::kAttribute,
                    fmt::format("'{}' needs its attribute '{}'", op.name, spec.name));
      continue;
    }
    LATHE_TRY(result[i], convert_attr(op, spec, spec.default_value));
  }
  return result;
}

Result<std::vector<TensorType>> Builder::infer_types(const Node& node) const {
  const OpDef& op = *node.op;
  std::vector<TensorType> types;
  if (op.infer) {
    LATHE_TRY(types, op.infer.function(node));
  } else if (!node.bodies.empty()) {
    for (Value output : node.bodies.front()->outputs) types.push_back(output.type());
  } else {
    return diag(code::kUnsupported,
                fmt::format("the result of '{}' cannot be inferred: {}", op.name, op.infer.why));
  }
  LATHE_CHECK(
      op.num_results < 0 || types.size() == static_cast<size_t>(op.num_results),
      fmt::format("'{}' inferred {} results instead of {}", op.name, types.size(), op.num_results));
  for (const TensorType& type : types) LATHE_DO(check_type(type));
  if (!node.in_place) return types;
  if (types.empty() || node.operands.empty() || !node.operands.front())
    return diag(code::kUnsupported, fmt::format("'{}' has no in-place form", op.name));
  const TensorType& target = node.operands.front().type();
  if (types.front().shape != target.shape)
    return diag(code::kShapeMismatch,
                fmt::format("'{}_' cannot write a result of shape {} over one of shape {}", op.name,
                            to_string(types.front().shape), to_string(target.shape)));
  types.front() = target;
  return types;
}

Node* Builder::create(const OpDef& op, std::vector<Value> operands, std::vector<int> list_sizes,
                      NamedAttrs attrs, std::string name, bool in_place,
                      std::vector<std::unique_ptr<Graph>> bodies) {
  if (failed_) return nullptr;
  if (Status status = check_operands(op, operands, list_sizes); !status.ok()) {
    fail(std::move(status).error());
    return nullptr;
  }
  Result<std::vector<Attr>> filled = fill_attrs(op, std::move(attrs));
  if (!filled.ok()) {
    fail(std::move(filled).error());
    return nullptr;
  }
  auto node = std::make_unique<Node>();
  node->op = &op;
  node->operands = std::move(operands);
  node->list_sizes = std::move(list_sizes);
  node->attrs = *std::move(filled);
  node->bodies = std::move(bodies);
  node->loc = loc_;
  node->in_place = in_place;
  Result<std::vector<TensorType>> types = infer_types(*node);
  if (!types.ok()) {
    fail(std::move(types).error());
    return nullptr;
  }
  node->types = *std::move(types);
  node->name = unique_name(graph_, name.empty() ? op.name : name);
  Node* result = node.get();
  const size_t position = std::min(insertion(), graph_.nodes.size());
  graph_.nodes.insert(graph_.nodes.begin() + static_cast<ptrdiff_t>(position), std::move(node));
  if (position_ != kEnd) position_ = position + 1;
  return result;
}

Value Builder::scalar(double value, DType dtype) {
  return call(
      kConstantOp, {},
      {{"value", std::vector<double>{value}}, {"dtype", dtype}, {"shape", std::vector<int64_t>{}}});
}

Value Builder::integer(int64_t value, DType dtype) {
  if (is_float(dtype)) return scalar(static_cast<double>(value), dtype);
  return call(kConstantOp, {},
              {{"value", std::vector<int64_t>{value}},
               {"dtype", dtype},
               {"shape", std::vector<int64_t>{}}});
}

Value Builder::param(TensorType type, std::string name) {
  if (failed_) return {};
  const OpDef* row = ops_.find(kParamOp);
  if (row == nullptr) {
    fail(internal_error("the table of ops has no 'param' row", __FILE__, __LINE__));
    return {};
  }
  auto node = std::make_unique<Node>();
  node->op = row;
  for (const AttrSpec& spec : row->attrs) node->attrs.push_back(spec.default_value);
  node->name = unique_name(graph_, name.empty() ? std::string(kParamOp) : name);
  node->types.push_back(std::move(type));
  node->loc = loc_;
  graph_.params.push_back(std::move(node));
  return graph_.params.back()->result();
}

void Builder::fail(Diag diag) {
  if (failed_) return;
  failed_ = true;
  if (diag.loc.is_unknown()) diag.loc = loc_;
  error_ = std::move(diag);
}

}  // namespace lathe
