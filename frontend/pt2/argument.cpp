// Reads the unions of the export schema: each is an object with exactly one key, the tag.
#include <array>

#include "frontend/pt2/argument_reader.h"
#include "frontend/pt2/schema.h"

namespace lathe::pt2 {
namespace {

using ArgumentTag = Argument::Tag;

// In the order of the enum.
constexpr std::array<std::string_view, static_cast<size_t>(ArgumentTag::unknown) + 1> kTagNames = {
    "as_none",
    "as_tensor",
    "as_tensors",
    "as_int",
    "as_ints",
    "as_float",
    "as_floats",
    "as_string",
    "as_strings",
    "as_sym_int",
    "as_sym_ints",
    "as_scalar_type",
    "as_memory_format",
    "as_layout",
    "as_device",
    "as_bool",
    "as_bools",
    "as_sym_bool",
    "as_sym_bools",
    "as_graph",
    "as_optional_tensors",
    "as_custom_obj",
    "as_operator",
    "as_sym_float",
    "as_sym_floats",
    "as_optional_tensor",
    "as_complex",
    "as_nested_tensors",
    "as_int_lists",
    "as_string_to_argument",
    "as_float_lists",
    "an argument of an unknown kind",
};

// {"name": ...}
struct TensorName {
  std::string name;
};
void read(Reader& reader, json::Value value, TensorName& out) {
  read_object(reader, value, required("name", out.name));
}

// {"as_tensor": {"name": ...}} or {"as_none": true}
struct OptionalTensor {
  std::optional<TensorName> as_tensor;
  bool as_none = false;
};
void read(Reader& reader, json::Value value, OptionalTensor& out) {
  read_object(reader, value, optional("as_tensor", out.as_tensor),
              optional("as_none", out.as_none));
}

std::vector<std::string> names_of(std::vector<TensorName> list) {
  std::vector<std::string> names;
  for (TensorName& item : list) names.push_back(std::move(item.name));
  return names;
}

template <class T>
constexpr std::string_view literal_key() {
  if constexpr (std::is_same_v<T, int64_t>) return "as_int";
  if constexpr (std::is_same_v<T, double>) return "as_float";
  return "as_bool";
}

// A hint is a union over three kinds of number; another kind than T is as good as none.
template <class T>
struct Hint {
  std::optional<T> value;
};
template <class T>
void read(Reader& reader, json::Value value, Hint<T>& out) {
  read_object(reader, value, optional(literal_key<T>(), out.value));
}

template <class T>
void read_sym_scalar(Reader& reader, json::Value value, SymScalar<T>& out) {
  out.offset = static_cast<uint32_t>(value.offset());
  if (!reader.expect(value, json::Kind::object)) return;
  for (auto [key, member] : value.members()) {
    if (key == literal_key<T>()) return read(reader, member, out.value);
    if (key != "as_expr") continue;
    Hint<T> hint;
    read_object(reader, member, required("expr_str", out.expr_str.emplace()),
                optional("hint", hint));
    out.hint = hint.value;
    return;
  }
  reader.fail(value, fmt::format("expected \"as_expr\" or \"{}\"", literal_key<T>()));
}

}  // namespace

// Static, not in the anonymous namespace: argument-dependent lookup must find these.
template <class T>
static void read(Reader& reader, json::Value value, SymArgument<T>& out) {
  if (!reader.expect(value, json::Kind::object)) return;
  for (auto [key, member] : value.members()) {
    if (key == "as_name") return read(reader, member, out.as_name.emplace());
    if (key == literal_key<T>()) return read(reader, member, out.value);
  }
  reader.fail(value, fmt::format("expected \"as_name\" or \"{}\"", literal_key<T>()));
}

static void read(Reader& reader, json::Value value, ComplexValue& out) {
  read_object(reader, value, required("real", out.real), required("imag", out.imag));
}

static void read(Reader& reader, json::Value value, GraphArgument& out) {
  out.graph = std::make_unique<Graph>();
  read_object(reader, value, required("name", out.name), required("graph", *out.graph));
}

namespace {

template <class T>
void read_as(Reader& reader, json::Value value, Argument& out) {
  read(reader, value, out.value.emplace<T>());
}

void read_dict(Reader& reader, json::Value value, Argument& out) {
  auto& dict = out.value.emplace<Argument::Dict>();
  if (!reader.expect(value, json::Kind::object)) return;
  for (auto [key, member] : value.members()) {
    if (reader.failed()) return;
    dict.push_back({std::string(key), Argument()});
    read(reader, member, dict.back().value);
  }
}

// Variants made of tensor names.
void read_tensors(Reader& reader, json::Value value, Argument& out) {
  if (out.tag == ArgumentTag::as_tensor) {
    TensorName tensor;
    read(reader, value, tensor);
    out.value = std::move(tensor.name);
  } else if (out.tag == ArgumentTag::as_tensors) {
    std::vector<TensorName> tensors;
    read(reader, value, tensors);
    out.value = names_of(std::move(tensors));
  } else if (out.tag == ArgumentTag::as_nested_tensors) {
    std::vector<std::vector<TensorName>> lists;
    read(reader, value, lists);
    auto& names = out.value.emplace<std::vector<std::vector<std::string>>>();
    for (auto& list : lists) names.push_back(names_of(std::move(list)));
  } else {
    std::vector<OptionalTensor> tensors;
    if (out.tag == ArgumentTag::as_optional_tensors)
      read(reader, value, tensors);
    else
      read(reader, value, tensors.emplace_back());
    auto& names = out.value.emplace<std::vector<Argument::OptionalName>>();
    for (OptionalTensor& tensor : tensors)
      names.push_back(tensor.as_tensor ? Argument::OptionalName(std::move(tensor.as_tensor->name))
                                       : std::nullopt);
  }
}

void read_payload(Reader& reader, json::Value value, Argument& out) {
  switch (out.tag) {
    case ArgumentTag::as_none:
    case ArgumentTag::unknown:
      return;
    case ArgumentTag::as_tensor:
    case ArgumentTag::as_tensors:
    case ArgumentTag::as_nested_tensors:
    case ArgumentTag::as_optional_tensor:
    case ArgumentTag::as_optional_tensors:
      return read_tensors(reader, value, out);
    case ArgumentTag::as_int:
    case ArgumentTag::as_scalar_type:
    case ArgumentTag::as_memory_format:
    case ArgumentTag::as_layout:
      return read_as<int64_t>(reader, value, out);
    case ArgumentTag::as_ints:
      return read_as<std::vector<int64_t>>(reader, value, out);
    case ArgumentTag::as_float:
      return read_as<double>(reader, value, out);
    case ArgumentTag::as_floats:
      return read_as<std::vector<double>>(reader, value, out);
    case ArgumentTag::as_string:
    case ArgumentTag::as_operator:
      return read_as<std::string>(reader, value, out);
    case ArgumentTag::as_strings:
      return read_as<std::vector<std::string>>(reader, value, out);
    case ArgumentTag::as_sym_int:
      return read_as<SymArgument<int64_t>>(reader, value, out);
    case ArgumentTag::as_sym_ints:
      return read_as<std::vector<SymArgument<int64_t>>>(reader, value, out);
    case ArgumentTag::as_sym_float:
      return read_as<SymArgument<double>>(reader, value, out);
    case ArgumentTag::as_sym_floats:
      return read_as<std::vector<SymArgument<double>>>(reader, value, out);
    case ArgumentTag::as_sym_bool:
      return read_as<SymArgument<bool>>(reader, value, out);
    case ArgumentTag::as_sym_bools:
      return read_as<std::vector<SymArgument<bool>>>(reader, value, out);
    case ArgumentTag::as_device:
      return read_as<Device>(reader, value, out);
    case ArgumentTag::as_bool:
      return read_as<bool>(reader, value, out);
    case ArgumentTag::as_bools:
      return read_as<std::vector<bool>>(reader, value, out);
    case ArgumentTag::as_graph:
      return read_as<GraphArgument>(reader, value, out);
    case ArgumentTag::as_custom_obj:
      return read_as<CustomObjArgument>(reader, value, out);
    case ArgumentTag::as_complex:
      return read_as<ComplexValue>(reader, value, out);
    case ArgumentTag::as_int_lists:
      return read_as<std::vector<std::vector<int64_t>>>(reader, value, out);
    case ArgumentTag::as_float_lists:
      return read_as<std::vector<std::vector<double>>>(reader, value, out);
    case ArgumentTag::as_string_to_argument:
      return read_dict(reader, value, out);
  }
}

}  // namespace

std::string_view tag_name(Argument::Tag tag) { return kTagNames[static_cast<size_t>(tag)]; }

void read(Reader& reader, json::Value value, Device& out) {
  read_object(reader, value, required("type", out.type), optional("index", out.index));
}
void read(Reader& reader, json::Value value, SymInt& out) { read_sym_scalar(reader, value, out); }
void read(Reader& reader, json::Value value, SymFloat& out) { read_sym_scalar(reader, value, out); }
void read(Reader& reader, json::Value value, SymBool& out) { read_sym_scalar(reader, value, out); }

void read(Reader& reader, json::Value value, TensorMeta& out) {
  out.offset = static_cast<uint32_t>(value.offset());
  read_object(reader, value, required("dtype", out.dtype), required("sizes", out.sizes),
              optional("requires_grad", out.requires_grad), optional("device", out.device),
              optional("strides", out.strides), optional("storage_offset", out.storage_offset),
              optional("layout", out.layout));
}

void read(Reader& reader, json::Value value, CustomObjArgument& out) {
  read_object(reader, value, required("name", out.name), optional("class_fqn", out.class_fqn));
}

void read(Reader& reader, json::Value value, Argument& out) {
  out.offset = static_cast<uint32_t>(value.offset());
  if (!reader.expect(value, json::Kind::object)) return;
  if (value.size() != 1)
    return reader.fail(value,
                       fmt::format("an argument has exactly one key, found {}", value.size()));
  auto [key, member] = *value.members().begin();
  out.tag = ArgumentTag::unknown;
  for (size_t i = 0; i < static_cast<size_t>(ArgumentTag::unknown); ++i)
    if (kTagNames[i] == key) out.tag = static_cast<ArgumentTag>(i);
  read_payload(reader, member, out);
}

}  // namespace lathe::pt2
