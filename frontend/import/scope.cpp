// Resolves arguments of FX calls.
#include "frontend/import/scope.h"

#include <fmt/format.h>

#include <utility>

#include "frontend/import/payloads.h"
#include "ir/graph/tensor.h"
#include "ir/support/diag_codes.h"

namespace lathe {

using pt2::Argument;
using Tag = pt2::Argument::Tag;

Diag Scope::broken(uint32_t offset, std::string message) {
  return {code::kBadModel, json::locate(document_, offset, module_.locs), std::move(message)};
}

Diag Scope::unsupported(const Argument& arg) {
  return {code::kUnsupported, builder_.loc(),
          fmt::format("arguments of kind {} are not supported", pt2::tag_name(arg.tag))};
}

Result<std::optional<TensorType>> Scope::expected_type(const std::string& name) {
  auto meta = graph_.tensor_values.find(name);
  if (meta == graph_.tensor_values.end()) return std::optional<TensorType>();
  LATHE_TRY(TensorType type, symbols_.type(meta->second, name));
  return std::optional<TensorType>(std::move(type));
}

Result<std::optional<Placement>> Scope::placement(const std::string& name) {
  const auto found = graph_.tensor_values.find(name);
  if (found == graph_.tensor_values.end()) return std::optional<Placement>();
  const pt2::TensorMeta& meta = found->second;
  if (meta.strides.size() != meta.sizes.size()) return std::optional<Placement>();
  Placement placement;
  LATHE_TRY(const Dim offset, symbols_.dim(meta.storage_offset));
  placement.offset = offset.is_const() ? offset.value() : INT64_MAX;
  bool is_row_major = offset == Dim(0);
  Dim row_major = 1;
  for (size_t d = meta.sizes.size(); d-- > 0;) {
    LATHE_TRY(const Dim size, symbols_.dim(meta.sizes[d]));
    LATHE_TRY(const Dim stride, symbols_.dim(meta.strides[d]));
    is_row_major = is_row_major && (size == Dim(1) || stride == row_major);
    row_major = row_major * size;
    placement.strides.insert(placement.strides.begin(), stride.is_const() ? stride.value() : -1);
  }
  return is_row_major ? std::nullopt : std::optional(std::move(placement));
}

Encoding Scope::encoding(const std::string& name) const {
  const auto meta = graph_.tensor_values.find(name);
  return meta == graph_.tensor_values.end() ? Encoding::none : encoding_of(meta->second.dtype);
}

Result<Value> Scope::weight(const std::string& name, const std::string& weight) {
  auto found = module_.weights.find(weight);
  LATHE_CHECK(found != module_.weights.end(), fmt::format("weight '{}' was not loaded", weight));
  const TensorType& type = found->second.data.type;
  const OpDef* row = builder_.ops().find(kConstantOp);
  LATHE_CHECK(row != nullptr, "the table of ops has no constant");
  NamedAttrs attrs = {{"name", weight}, {"dtype", type.dtype}, {"shape", type.static_shape()}};
  if (is_number(found->second) && found->second.data.bytes != nullptr) {
    LATHE_TRY(const Tensor number, read_tensor(found->second.data));
    attrs[0] = {"value", is_float(type.dtype) ? Attr(number.floats) : Attr(number.integers)};
  }
  Node* node = builder_.create(*row, {}, {}, std::move(attrs), name);
  if (!node) return builder_.error();
  builder_.mark(node->result(), encoding(name));
  return node->result();
}

Result<CallArg> Scope::named(const std::string& name, uint32_t offset) {
  auto found = names_.find(name);
  if (found == names_.end()) {
    if (graph_.sym_int_values.count(name)) {
      LATHE_TRY(Dim dim, size({name, 0}, offset));
      return CallArg(dim.is_const() ? Attr(dim.value()) : Attr(std::move(dim)));
    }
    Diag diag =
        broken(offset, fmt::format("value '{}' is used but nothing before defines it", name));
    diag.code = code::kUndefinedValue;
    return diag;
  }
  if (const auto* weight_name = std::get_if<WeightName>(&found->second)) {
    LATHE_TRY(Value value, weight(name, weight_name->name));
    found->second = CallArg(value);
  }
  const CallArg& arg = *std::get_if<CallArg>(&found->second);
  const Value* value = std::get_if<Value>(&arg);
  if (!value || *value) return arg;
  return Diag{code::kUnsupported, builder_.loc(),
              fmt::format("'{}' is a result that Lathe does not compute", name)};
}

Result<Value> Scope::tensor(const std::string& name, uint32_t offset) {
  LATHE_TRY(CallArg arg, named(name, offset));
  const Value* value = std::get_if<Value>(&arg);
  if (!value) return broken(offset, fmt::format("value '{}' is not a tensor", name));
  return *value;
}

Result<Dim> Scope::size(const pt2::SymArgument<int64_t>& arg, uint32_t offset) {
  if (!arg.as_name) return Dim(arg.value);
  if (is_data(*arg.as_name))
    return Diag{code::kUnsupported, builder_.loc(),
                fmt::format("'{}' is a size that elements of a tensor decide; sizes must follow "
                            "from those of the inputs",
                            *arg.as_name)};
  auto found = graph_.sym_int_values.find(*arg.as_name);
  if (found != graph_.sym_int_values.end()) return symbols_.dim(found->second);
  Diag diag = broken(offset, fmt::format("symbolic integer '{}' is not defined", *arg.as_name));
  diag.code = code::kUndefinedValue;
  return diag;
}

Result<CallArg> Scope::sym_list(const std::vector<pt2::SymArgument<int64_t>>& list,
                                uint32_t offset) {
  std::vector<Dim> dims;
  for (const auto& element : list) {
    LATHE_TRY(Dim dim, size(element, offset));
    dims.push_back(std::move(dim));
  }
  return CallArg(Attr(std::move(dims)));
}

// Symbolic bools and floats are supported where they are in fact constants.
template <class T>
Result<CallArg> Scope::sym_scalar(const pt2::SymArgument<T>& arg,
                                  const pt2::Table<pt2::SymScalar<T>>& values, uint32_t offset) {
  if (!arg.as_name) return CallArg(Attr(arg.value));
  if (is_data(*arg.as_name)) return named(*arg.as_name, offset);
  auto found = values.find(*arg.as_name);
  if (found == values.end())
    return broken(offset, fmt::format("symbolic scalar '{}' is not defined", *arg.as_name));
  if (!found->second.expr_str) return CallArg(Attr(found->second.value));
  return Diag{code::kUnsupported, builder_.loc(),
              fmt::format("'{}' is a {} that depends on sizes ({}); only integers may",
                          *arg.as_name, std::is_same_v<T, bool> ? "condition" : "number",
                          found->second.expr_str->substr(0, 200))};
}

Result<CallArg> Scope::argument(const Argument& arg) {
  switch (arg.tag) {
    case Tag::as_none:
      return CallArg(Attr());
    case Tag::as_tensor:
      return named(arg.as<std::string>(), arg.offset);
    case Tag::as_int:
    case Tag::as_memory_format:
    case Tag::as_layout:
      return CallArg(Attr(arg.as<int64_t>()));
    case Tag::as_ints:
      return CallArg(Attr(arg.as<std::vector<int64_t>>()));
    case Tag::as_float:
      return CallArg(Attr(arg.as<double>()));
    case Tag::as_floats:
      return CallArg(Attr(arg.as<std::vector<double>>()));
    case Tag::as_bool:
      return CallArg(Attr(arg.as<bool>()));
    case Tag::as_bools:
      return CallArg(Attr(arg.as<std::vector<bool>>()));
    case Tag::as_string:
    case Tag::as_operator:
      return CallArg(Attr(arg.as<std::string>()));
    case Tag::as_complex: {
      const auto& number = arg.as<pt2::ComplexValue>();
      return CallArg(ComplexNumber{number.real, number.imag});
    }
    case Tag::as_device:
      return CallArg(Attr(arg.as<pt2::Device>().type));
    case Tag::as_scalar_type: {
      std::optional<DType> dtype = dtype_of(arg.as<int64_t>());
      const Encoding encoding = encoding_of(arg.as<int64_t>());
      if (numbers_of(encoding) == NumberKind::float8) return CallArg(Float8DType{encoding});
      if (dtype && encoding == Encoding::complex) return CallArg(ComplexDType{*dtype});
      if (dtype) return CallArg(Attr(*dtype));
      return Diag{code::kUnsupported, builder_.loc(),
                  fmt::format("dtype {} is not supported", scalar_type_name(arg.as<int64_t>()))};
    }
    case Tag::as_sym_int: {
      const auto& number = arg.as<pt2::SymArgument<int64_t>>();
      if (number.as_name && is_data(*number.as_name)) return named(*number.as_name, arg.offset);
      LATHE_TRY(Dim dim, size(number, arg.offset));
      return CallArg(dim.is_const() ? Attr(dim.value()) : Attr(std::move(dim)));
    }
    case Tag::as_sym_ints:
      return sym_list(arg.as<std::vector<pt2::SymArgument<int64_t>>>(), arg.offset);
    case Tag::as_sym_bool:
      return sym_scalar(arg.as<pt2::SymArgument<bool>>(), graph_.sym_bool_values, arg.offset);
    case Tag::as_sym_float:
      return sym_scalar(arg.as<pt2::SymArgument<double>>(), graph_.sym_float_values, arg.offset);
    case Tag::as_optional_tensor: {
      LATHE_TRY(std::vector<CallArg> list, elements(arg));
      return std::move(list.front());
    }
    case Tag::as_tensors:
    case Tag::as_optional_tensors: {
      LATHE_TRY(std::vector<CallArg> list, elements(arg));
      std::vector<Value> values;
      for (const CallArg& element : list) {
        const Value* value = std::get_if<Value>(&element);
        if (!value) return broken(arg.offset, "a list of tensors holds something else");
        values.push_back(*value);
      }
      return CallArg(std::move(values));
    }
    case Tag::as_strings:
    case Tag::as_sym_bools:
    case Tag::as_sym_floats:
    case Tag::as_graph:
    case Tag::as_custom_obj:
    case Tag::as_nested_tensors:
    case Tag::as_int_lists:
    case Tag::as_float_lists:
    case Tag::as_string_to_argument:
    case Tag::unknown:
      break;
  }
  return unsupported(arg);
}

Result<std::vector<CallArg>> Scope::elements(const Argument& arg) {
  std::vector<CallArg> list;
  if (arg.tag == Tag::as_tensors) {
    for (const std::string& name : arg.as<std::vector<std::string>>()) {
      LATHE_TRY(CallArg value, named(name, arg.offset));
      list.push_back(std::move(value));
    }
  } else if (arg.tag == Tag::as_optional_tensors || arg.tag == Tag::as_optional_tensor) {
    for (const Argument::OptionalName& name : arg.as<std::vector<Argument::OptionalName>>()) {
      Value value;
      if (name) {
        LATHE_TRY(value, tensor(*name, arg.offset));
      }
      list.emplace_back(value);
    }
  } else {
    LATHE_TRY(CallArg value, argument(arg));
    list.push_back(std::move(value));
  }
  return list;
}

std::optional<PyConstant> Scope::constant(const Argument& arg) {
  switch (arg.tag) {
    case Tag::as_none:
      return PyConstant();
    case Tag::as_bool:
      return PyConstant(arg.as<bool>());
    case Tag::as_int:
      return PyConstant(arg.as<int64_t>());
    case Tag::as_float:
      return PyConstant(arg.as<double>());
    case Tag::as_string:
      return PyConstant(arg.as<std::string>());
    default:
      return std::nullopt;
  }
}

}  // namespace lathe
