// Maps calls of ATen operators to rows (see import_call.h).
#include "ir/op/import_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "ir/op/dense.h"
#include "ir/op/index_assertions.h"
#include "ir/op/pointwise.h"
#include "ir/op/promotion.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// What a message calls the kind of an attribute that a file gave.
std::string_view kind_name(const Attr& attr) {
  constexpr std::string_view kNames[] = {"None",
                                         "a bool",
                                         "an integer",
                                         "a number",
                                         "a string",
                                         "a dtype",
                                         "a symbolic size",
                                         "a list of bools",
                                         "a list of integers",
                                         "a list of numbers",
                                         "a list of sizes",
                                         "a layout"};
  return kNames[attr.index()];
}

std::optional<std::vector<Dim>> as_dims(const Attr& attr) {
  if (const auto* dims = std::get_if<std::vector<Dim>>(&attr)) return *dims;
  if (const auto* dim = std::get_if<Dim>(&attr)) return std::vector<Dim>{*dim};
  if (const auto* value = std::get_if<int64_t>(&attr)) return std::vector<Dim>{Dim(*value)};
  if (const auto* values = std::get_if<std::vector<int64_t>>(&attr)) {
    return std::vector<Dim>(values->begin(), values->end());
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> as_ints(const Attr& attr) {
  const auto dims = as_dims(attr);
  if (!dims) return std::nullopt;
  std::vector<int64_t> values;
  for (const Dim& dim : *dims) {
    if (!dim.is_const()) return std::nullopt;
    values.push_back(dim.value());
  }
  return values;
}

std::optional<std::vector<double>> as_numbers(const Attr& attr) {
  if (const auto* values = std::get_if<std::vector<double>>(&attr)) return *values;
  if (const auto* value = std::get_if<double>(&attr)) return std::vector<double>{*value};
  if (const auto* value = std::get_if<bool>(&attr)) return std::vector<double>{*value ? 1.0 : 0.0};
  if (const auto ints = as_ints(attr)) return std::vector<double>(ints->begin(), ints->end());
  return std::nullopt;
}

// A list argument of length 1 for int[k] stands for k copies.
template <class T>
std::vector<T> repeat_single(std::vector<T> values, const SchemaArg& arg) {
  if (values.size() == 1 && arg.list_size > 1) {
    values.resize(static_cast<size_t>(arg.list_size), values.front());
  }
  return values;
}

// `given` as the row's kind of attribute; nullopt when it cannot be that.
std::optional<Attr> convert(const Attr& given, AttrKind kind, const SchemaArg& arg) {
  switch (kind) {
    case AttrKind::boolean:
      if (const auto* value = std::get_if<int64_t>(&given)) return Attr{*value != 0};
      if (std::holds_alternative<bool>(given)) return given;
      return std::nullopt;
    case AttrKind::integer:
      if (const auto ints = as_ints(given); ints && ints->size() == 1) return Attr{ints->front()};
      if (const auto* value = std::get_if<bool>(&given)) return Attr{int64_t{*value}};
      return std::nullopt;
    case AttrKind::number:
      if (std::holds_alternative<double>(given) || std::holds_alternative<int64_t>(given) ||
          std::holds_alternative<bool>(given)) {
        return given;
      }
      if (const auto ints = as_ints(given); ints && ints->size() == 1) return Attr{ints->front()};
      return std::nullopt;
    case AttrKind::string:
      return std::holds_alternative<std::string>(given) ? std::optional(given) : std::nullopt;
    case AttrKind::dtype:
      return std::holds_alternative<DType>(given) ? std::optional(given) : std::nullopt;
    case AttrKind::dim:
      if (const auto dims = as_dims(given); dims && dims->size() == 1) return Attr{dims->front()};
      return std::nullopt;
    case AttrKind::ints:
      if (auto ints = as_ints(given)) return Attr{repeat_single(std::move(*ints), arg)};
      return std::nullopt;
    case AttrKind::numbers:
      if (auto numbers = as_numbers(given)) return Attr{std::move(*numbers)};
      return std::nullopt;
    case AttrKind::dims:
      if (auto dims = as_dims(given)) return Attr{repeat_single(std::move(*dims), arg)};
      return std::nullopt;
    case AttrKind::bools:
      return std::holds_alternative<std::vector<bool>>(given) ? std::optional(given) : std::nullopt;
    case AttrKind::layout:
      return std::holds_alternative<Layout>(given) ? std::optional(given) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<TensorType> tensor_types(const ImportCall& call) {
  std::vector<TensorType> types;
  for (const auto& [name, arg] : call.args) {
    if (const auto* value = std::get_if<Value>(&arg); value && *value) {
      types.push_back(value->type());
    }
  }
  return types;
}

Result<std::vector<Value>> map_operands(Builder& builder, const ImportCall& call,
                                        const Import& import, std::vector<int>& list_sizes) {
  std::vector<Value> operands;
  for (const OperandSpec& spec : call.op->operands) {
    const SchemaArg* arg = schema_arg(import, *call.schema, spec.name);
    if (spec.kind == OperandKind::tensor || spec.kind == OperandKind::optional_tensor) {
      Value value;
      if (arg != nullptr) {
        LATHE_TRY(value, import_tensor(builder, call, arg->name));
      }
      if (!value && spec.kind == OperandKind::tensor) {
        return Diag{code::kBadModel, call.loc,
                    fmt::format("'{}' lacks its tensor argument '{}'", call.target, spec.name)};
      }
      operands.push_back(value);
    } else {
      const std::vector<Value> values = call.values(arg->name);
      list_sizes.push_back(static_cast<int>(values.size()));
      operands.insert(operands.end(), values.begin(), values.end());
    }
  }
  return operands;
}

// Numbers that are elements of tensors go where rows take tensors; what reads a number as a row is
// built cannot have them.
Status refuse_data_scalars(const ImportCall& call) {
  for (const SchemaArg& arg : call.schema->args) {
    if (arg.type == SchemaType::tensor || !call.value(arg.name)) continue;
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' of '{}' is an element of a tensor, expected a number that is "
                            "known when the graph is built",
                            arg.name, call.target)};
  }
  return Ok{};
}

Result<NamedAttrs> map_attrs(const ImportCall& call, const Import& import) {
  NamedAttrs attrs = import.fixed;
  for (const AttrSpec& spec : call.op->attrs) {
    const SchemaArg* arg = schema_arg(import, *call.schema, spec.name);
    if (arg == nullptr || call.is_none(arg->name)) continue;  // the row's default
    if (call.value(arg->name)) LATHE_DO(refuse_data_scalars(call));
    const Attr given = call.attr(arg->name);
    auto attr = convert(given, spec.kind, *arg);
    if (!attr) {
      return Diag{code::kBadModel, call.loc,
                  fmt::format("argument '{}' of '{}' is {}, which its schema does not allow",
                              arg->name, call.target, kind_name(given))};
    }
    attrs.emplace_back(spec.name, std::move(*attr));
  }
  return attrs;
}

// In-place operators call what they write self, whatever the functional one does (dropout: input).
void rename_written(ImportCall& call) {
  for (auto& [name, value] : call.args) {
    if (name == "self" && call.schema->find(name) == nullptr) name = call.schema->args.front().name;
  }
}

// Rows that compute in floats take numbers as such: the integers that they stand beside may lack
// them, as u8 lacks -3.
void take_as_floats(ImportCall& call) {
  for (const OperandSpec& operand : call.op->operands) {
    for (auto& [name, arg] : call.args) {
      const Attr* attr = name == operand.name ? std::get_if<Attr>(&arg) : nullptr;
      const auto* number = attr == nullptr ? nullptr : std::get_if<int64_t>(attr);
      if (number != nullptr) arg = Attr{static_cast<double>(*number)};
    }
  }
}

Status check_args(const ImportCall& call) {
  for (const auto& [name, value] : call.args) {
    if (call.schema->find(name) != nullptr) continue;
    return Diag{code::kBadModel, call.loc,
                fmt::format("'{}' has no argument '{}'; its schema is of another version",
                            call.target, name)};
  }
  return Ok{};
}

// Tensors where the schema has them, so that no row's own `build` meets a null one: a number in the
// place of a tensor becomes a constant.
Status complete_tensors(Builder& builder, ImportCall& call) {
  std::vector<std::pair<std::string, CallArg>> made;
  for (const SchemaArg& arg : call.schema->args) {
    if (arg.type != SchemaType::tensor) continue;
    const CallArg* given = call.find(arg.name);
    if (arg.is_list) {
      for (Value element : call.values(arg.name)) {
        if (element || arg.has_optional_elements) continue;
        return Diag{
            code::kBadModel, call.loc,
            fmt::format("the list '{}' of '{}' lacks one of its tensors", arg.name, call.target)};
      }
      continue;
    }
    LATHE_TRY(const Value value, import_tensor(builder, call, arg.name));
    if (!value && !arg.is_optional) {
      return Diag{code::kBadModel, call.loc,
                  fmt::format("'{}' lacks its tensor argument '{}'", call.target, arg.name)};
    }
    if (value && std::holds_alternative<Attr>(*given)) made.emplace_back(arg.name, value);
  }
  for (auto& [name, value] : call.args) {
    for (auto& [made_name, constant] : made) {
      if (name == made_name) value = constant;
    }
  }
  return Ok{};
}

// What kinds of numbers take part, by their place in kNumberKinds.
std::array<bool, std::size(kNumberKinds)> numbers_in(const Builder& builder,
                                                     const ImportCall& call) {
  std::array<bool, std::size(kNumberKinds)> found = {};
  const auto add = [&](NumberKind numbers) { found[static_cast<size_t>(numbers)] = true; };
  for (const auto& [name, arg] : call.args) {
    if (std::holds_alternative<ComplexNumber>(arg) || std::holds_alternative<ComplexDType>(arg))
      add(NumberKind::complex);
    if (std::holds_alternative<Float8DType>(arg)) add(NumberKind::float8);
    if (const auto* value = std::get_if<Value>(&arg)) add(numbers_of(builder.encoding(*value)));
    if (const auto* list = std::get_if<std::vector<Value>>(&arg))
      for (Value value : *list) add(numbers_of(builder.encoding(value)));
  }
  return found;
}

Result<NumberKind> kind_of_numbers(const Builder& builder, const ImportCall& call) {
  const auto found = numbers_in(builder, call);
  const auto has = [&](NumberKind numbers) { return found[static_cast<size_t>(numbers)]; };
  if (has(NumberKind::complex) && has(NumberKind::float8))
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' takes complex numbers or float8, not both", call.target)};
  if (has(NumberKind::complex)) return NumberKind::complex;
  return has(NumberKind::float8) ? NumberKind::float8 : NumberKind::real;
}

// Composites that are right on either kind of number may know some of them as real ones alone.
Status refuse_misread(const ImportCall& call) {
  if (call.misread.empty()) return Ok{};
  return Diag{code::kUnsupported, call.loc,
              fmt::format("'{}' of '{}' is a complex number, expected a real one", call.misread,
                          call.target)};
}

// A composite in place: its result is copied to what it writes.
Result<std::vector<Value>> write_back(Builder& builder, const ImportCall& call, Value result) {
  ImportCall copy{.target = "copy_", .name = call.name, .loc = call.loc, .is_inner = true};
  copy.args = {{"self", call.value(call.schema->args.front().name)}, {"src", result}};
  return import_call(builder, *call.table, std::move(copy));
}

Status check_results(const ImportCall& call, const std::vector<Value>& results) {
  for (size_t i = 0; i < std::min(call.expected.size(), results.size()); ++i) {
    if (!results[i] || results[i].type().dtype == call.expected[i].dtype) continue;
    return Diag{
        code::kTypeMismatch, call.loc,
        fmt::format("result {} of '{}' is {} in the file, but its arguments make it {}", i,
                    call.target, to_string(call.expected[i]), to_string(results[i].type()))};
  }
  return Ok{};
}

}  // namespace

const CallArg* ImportCall::find(std::string_view arg) const {
  for (const auto& [arg_name, value] : args) {
    if (arg_name == arg) return &value;
  }
  return nullptr;
}

Value ImportCall::value(std::string_view arg) const {
  const CallArg* found = find(arg);
  const Value* value = found ? std::get_if<Value>(found) : nullptr;
  return value ? *value : Value{};
}

std::vector<Value> ImportCall::values(std::string_view arg) const {
  const CallArg* found = find(arg);
  const auto* list = found ? std::get_if<std::vector<Value>>(found) : nullptr;
  return list ? *list : std::vector<Value>{};
}

Attr ImportCall::attr(std::string_view arg) const {
  const CallArg* found = find(arg);
  if (found && std::holds_alternative<ComplexNumber>(*found)) misread = arg;
  const Attr* attr = found ? std::get_if<Attr>(found) : nullptr;
  return attr ? *attr : Attr{};
}

bool ImportCall::is_none(std::string_view arg) const {
  const CallArg* found = find(arg);
  if (found == nullptr) return true;
  if (const Value* value = std::get_if<Value>(found)) return !*value;
  const Attr* attr = std::get_if<Attr>(found);
  return attr && std::holds_alternative<std::monostate>(*attr);
}

int64_t ImportCall::int_attr(std::string_view arg, int64_t fallback) const {
  const auto values = as_ints(attr(arg));
  return values && values->size() == 1 ? values->front() : fallback;
}

double ImportCall::float_attr(std::string_view arg, double fallback) const {
  const auto values = as_numbers(attr(arg));
  return values && values->size() == 1 ? values->front() : fallback;
}

bool ImportCall::bool_attr(std::string_view arg, bool fallback) const {
  const Attr given = attr(arg);
  const bool* value = std::get_if<bool>(&given);
  return value ? *value : fallback;
}

DType ImportCall::dtype_attr(std::string_view arg, DType fallback) const {
  const Attr given = attr(arg);
  const DType* value = std::get_if<DType>(&given);
  return value ? *value : fallback;
}

std::string ImportCall::string_attr(std::string_view arg) const {
  const Attr given = attr(arg);
  const std::string* value = std::get_if<std::string>(&given);
  return value ? *value : std::string{};
}

std::vector<int64_t> ImportCall::ints_attr(std::string_view arg) const {
  const SchemaArg* spec = schema ? schema->find(arg) : nullptr;
  std::vector<int64_t> values = as_ints(attr(arg)).value_or(std::vector<int64_t>{});
  return spec ? repeat_single(std::move(values), *spec) : values;
}

std::vector<Dim> ImportCall::dims_attr(std::string_view arg) const {
  const SchemaArg* spec = schema ? schema->find(arg) : nullptr;
  std::vector<Dim> values = as_dims(attr(arg)).value_or(std::vector<Dim>{});
  return spec ? repeat_single(std::move(values), *spec) : values;
}

Value complex_constant(Builder& builder, ComplexNumber number, DType part) {
  const Value pair = builder.call("constant", {},
                                  {{"value", std::vector<double>{number.real, number.imag}},
                                   {"dtype", part},
                                   {"shape", std::vector<int64_t>{2}}});
  builder.mark_complex(pair);
  return pair;
}

Result<int> import_dim(const ImportCall& call, std::string_view arg, int rank) {
  const int64_t dim = call.int_attr(arg);
  if (auto normalized = normalize_dim(dim, rank)) return *normalized;
  return Diag{code::kDimRange, call.loc,
              fmt::format("'{}' got dim {} for a tensor of rank {}", call.target, dim, rank)};
}

Result<Value> import_tensor(Builder& builder, const ImportCall& call, std::string_view arg) {
  const CallArg* found = call.find(arg);
  if (found == nullptr) return Value{};
  if (const Value* value = std::get_if<Value>(found)) return *value;
  if (const auto* number = std::get_if<ComplexNumber>(found)) {
    const DType part = weak_scalar_dtype(Attr{number->real}, tensor_types(call));
    return complex_constant(builder, *number, part);
  }
  const Attr* attr = std::get_if<Attr>(found);
  if (attr == nullptr) {
    return Diag{
        code::kBadModel, call.loc,
        fmt::format("argument '{}' of '{}' is a list, expected one tensor", arg, call.target)};
  }
  if (std::holds_alternative<std::monostate>(*attr)) return Value{};
  const DType dtype = weak_scalar_dtype(*attr, tensor_types(call));
  if (const Dim* dim = std::get_if<Dim>(attr); dim && !dim->is_const()) {
    return builder.call("size_value", {}, {{"value", *dim}, {"dtype", dtype}});
  }
  // An integer that the dtype lacks wraps, or PyTorch raises.
  if (const auto* integer = std::get_if<int64_t>(attr))
    return builder.integer(is_integer(dtype) ? wrap(dtype, *integer) : *integer, dtype);
  const auto value = as_numbers(*attr);
  if (!value || value->size() != 1) {
    return Diag{code::kBadModel, call.loc,
                fmt::format("argument '{}' of '{}' is {}, expected a tensor or a number", arg,
                            call.target, kind_name(*attr))};
  }
  return builder.scalar(value->front(), dtype);
}

Result<std::vector<Value>> import_node(Builder& builder, const ImportCall& call,
                                       std::string_view op, std::vector<Value> operands,
                                       NamedAttrs attrs, std::vector<int> list_sizes) {
  const OpDef* row = builder.ops().find(op);
  LATHE_CHECK(row != nullptr, fmt::format("no op '{}' for '{}'", op, call.target));
  Node* node = builder.create(*row, std::move(operands), std::move(list_sizes), std::move(attrs),
                              call.name, call.in_place);
  if (builder.failed()) return builder.error();
  std::vector<Value> results;
  for (size_t i = 0; i < node->types.size(); ++i)
    results.push_back(node->result(static_cast<int>(i)));
  return results;
}

Result<std::vector<Value>> import_call(Builder& builder, const ImportTable& table,
                                       ImportCall call) {
  LATHE_TRY(const NumberKind numbers, kind_of_numbers(builder, call));
  const ImportTable::Match match = table.find(call.target, numbers);
  if (!match && numbers != NumberKind::real) {
    return Diag{code::kUnsupported, call.loc,
                fmt::format("'{}' of {} is not supported", call.target,
                            numbers == NumberKind::complex ? "complex numbers" : "float8")};
  }
  if (!match) {
    return Diag{code::kUnsupportedOp, call.loc, fmt::format("no op imports '{}'", call.target)};
  }
  call.table = &table;
  call.schema = &match.entry->schema;
  call.op = match.entry->op;
  call.in_place = match.in_place;
  builder.set_loc(call.loc);
  if (call.in_place) rename_written(call);
  LATHE_DO(check_args(call));
  for (const SchemaArg& arg : call.schema->args) {
    if (call.find(arg.name) == nullptr && arg.default_value) {
      call.args.emplace_back(arg.name, *arg.default_value);
    }
  }
  if (!call.is_inner) LATHE_DO(assert_indices(builder, call));
  const Import& import = *match.entry->import;
  std::vector<Value> results;
  if (import.build != nullptr) {
    LATHE_DO(refuse_data_scalars(call));
    LATHE_DO(complete_tensors(builder, call));
    LATHE_TRY(results, import.build(builder, call));
    LATHE_DO(refuse_misread(call));
    if (builder.failed()) return builder.error();
    const bool is_written = !results.empty() && results.front() && results.front().node->in_place;
    if (call.op == nullptr && call.in_place && !is_written) {
      LATHE_TRY(results, write_back(builder, call, results.front()));
    }
  } else {
    if (call.op->infer.function == &infer_float) take_as_floats(call);
    std::vector<int> list_sizes;
    LATHE_TRY(std::vector<Value> operands, map_operands(builder, call, import, list_sizes));
    LATHE_TRY(NamedAttrs attrs, map_attrs(call, import));
    LATHE_TRY(results, import_node(builder, call, call.op->name, std::move(operands),
                                   std::move(attrs), std::move(list_sizes)));
  }
  if (!import.has_own_types) LATHE_DO(check_results(call, results));
  return results;
}

}  // namespace lathe
