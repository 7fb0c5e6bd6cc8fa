// Reads the schema's structs, one table of fields each. The Argument union is in argument.cpp.
#include "frontend/pt2/schema.h"

#include "frontend/pt2/argument_reader.h"

namespace lathe::pt2 {

// The readers are static, not in an anonymous namespace: argument-dependent lookup must find them.
static constexpr int64_t kMajor = 8;

static void read(Reader& reader, json::Value value, NamedArgument& out) {
  read_object(reader, value, optional("name", out.name), required("arg", out.arg),
              optional("kind", out.kind));
}

static void read(Reader& reader, json::Value value, NodeMetadata& out) {
  read_object(reader, value, optional("stack_trace", out.stack_trace),
              optional("nn_module_stack", out.nn_module_stack),
              optional("source_fn_stack", out.source_fn_stack), optional("torch_fn", out.torch_fn),
              optional("from_node", out.from_node), optional("custom", out.custom));
}

static void read(Reader& reader, json::Value value, Node& out) {
  out.offset = static_cast<uint32_t>(value.offset());
  read_object(reader, value, required("target", out.target), required("inputs", out.inputs),
              required("outputs", out.outputs), optional("metadata", out.metadata),
              optional("is_hop_single_tensor_return", out.is_hop_single_tensor_return),
              optional("name", out.name));
}

// The variant is the standard library's, where no reader of ours would be looked for.
struct ConstantTarget {
  ConstantValue& value;
};
static void read(Reader& reader, json::Value value, ConstantTarget& target) {
  ConstantValue& out = target.value;
  if (!reader.expect(value, json::Kind::object)) return;
  if (value.size() != 1) return reader.fail(value, "a constant has exactly one key");
  auto [key, member] = *value.members().begin();
  if (key == "as_none") {
    out = std::monostate();
  } else if (key == "as_int") {
    read(reader, member, out.emplace<int64_t>());
  } else if (key == "as_float") {
    read(reader, member, out.emplace<double>());
  } else if (key == "as_string") {
    read(reader, member, out.emplace<std::string>());
  } else if (key == "as_bool") {
    read(reader, member, out.emplace<bool>());
  } else {
    reader.fail(value, fmt::format("unknown constant \"{}\"", key.substr(0, 40)));
  }
}

// Inside a spec, `arg` is a TensorArgument or the like, {"name": ...}, not a tagged Argument.
struct NamedValue {
  Argument::Tag tag;
  Argument& arg;
};
static void read(Reader& reader, json::Value value, NamedValue& out) {
  out.arg.tag = out.tag;
  out.arg.offset = static_cast<uint32_t>(value.offset());
  read_object(reader, value, required("name", out.arg.value.emplace<std::string>()));
}

static void read(Reader& reader, json::Value value, InputSpec& out) {
  using Tag = InputSpec::Tag;
  out.offset = static_cast<uint32_t>(value.offset());
  if (!reader.expect(value, json::Kind::object)) return;
  if (value.size() != 1) return reader.fail(value, "an input spec has exactly one key");
  auto [key, member] = *value.members().begin();
  NamedValue tensor{Argument::Tag::as_tensor, out.arg};
  if (key == "user_input") {
    out.tag = Tag::user_input;
    read_object(reader, member, required("arg", out.arg));
  } else if (key == "parameter") {
    out.tag = Tag::parameter;
    read_object(reader, member, required("arg", tensor), required("parameter_name", out.target));
  } else if (key == "buffer") {
    out.tag = Tag::buffer;
    read_object(reader, member, required("arg", tensor), required("buffer_name", out.target),
                optional("persistent", out.persistent));
  } else if (key == "tensor_constant") {
    out.tag = Tag::tensor_constant;
    read_object(reader, member, required("arg", tensor),
                required("tensor_constant_name", out.target));
  } else if (key == "custom_obj") {
    out.tag = Tag::custom_obj;
    NamedValue object{Argument::Tag::as_custom_obj, out.arg};
    read_object(reader, member, required("arg", object), required("custom_obj_name", out.target));
  } else if (key == "token") {
    out.tag = Tag::token;
    read_object(reader, member, required("arg", tensor));
  } else if (key == "constant_input") {
    out.tag = Tag::constant_input;
    ConstantTarget constant{out.value};
    read_object(reader, member, required("name", out.target), required("value", constant));
  }
}

static void read(Reader& reader, json::Value value, OutputSpec& out) {
  using Tag = OutputSpec::Tag;
  out.offset = static_cast<uint32_t>(value.offset());
  if (!reader.expect(value, json::Kind::object)) return;
  if (value.size() != 1) return reader.fail(value, "an output spec has exactly one key");
  auto [key, member] = *value.members().begin();
  struct Row {
    std::string_view key;
    Tag tag;
    std::string_view target;
  };
  static constexpr Row kRows[] = {
      {"loss_output", Tag::loss_output, ""},
      {"buffer_mutation", Tag::buffer_mutation, "buffer_name"},
      {"gradient_to_parameter", Tag::gradient_to_parameter, "parameter_name"},
      {"gradient_to_user_input", Tag::gradient_to_user_input, "user_input_name"},
      {"user_input_mutation", Tag::user_input_mutation, "user_input_name"},
      {"token", Tag::token, ""},
      {"parameter_mutation", Tag::parameter_mutation, "parameter_name"},
  };
  if (key == "user_output") {
    out.tag = Tag::user_output;
    return read_object(reader, member, required("arg", out.arg));
  }
  NamedValue tensor{Argument::Tag::as_tensor, out.arg};
  for (const Row& row : kRows) {
    if (key != row.key) continue;
    out.tag = row.tag;
    if (row.target.empty()) return read_object(reader, member, required("arg", tensor));
    return read_object(reader, member, required("arg", tensor), required(row.target, out.target));
  }
}

static void read(Reader& reader, json::Value value, GraphSignature& out) {
  read_object(reader, value, required("input_specs", out.input_specs),
              required("output_specs", out.output_specs));
}

static void read(Reader& reader, json::Value value, RangeConstraint& out) {
  read_object(reader, value, optional("min_val", out.min_val), optional("max_val", out.max_val));
}

static void read(Reader& reader, json::Value value, ModuleCallSignature& out) {
  read_object(reader, value, optional("inputs", out.inputs), optional("outputs", out.outputs),
              required("in_spec", out.in_spec), required("out_spec", out.out_spec),
              optional("forward_arg_names", out.forward_arg_names));
}

static void read(Reader& reader, json::Value value, ModuleCallEntry& out) {
  read_object(reader, value, required("fqn", out.fqn), optional("signature", out.signature));
}

static void read(Reader& reader, json::Value value, NamedTupleDef& out) {
  read_object(reader, value, required("field_names", out.field_names));
}

static void read(Reader& reader, json::Value value, GraphModule& out) {
  read_object(reader, value, required("graph", out.graph), required("signature", out.signature),
              required("module_call_graph", out.module_call_graph),
              optional("metadata", out.metadata),
              optional("treespec_namedtuple_fields", out.treespec_namedtuple_fields));
}

static void read(Reader& reader, json::Value value, SchemaVersion& out) {
  read_object(reader, value, required("major", out.major), required("minor", out.minor));
}

static void read(Reader& reader, json::Value value, ExportedProgram& out) {
  read_object(reader, value, required("graph_module", out.graph_module),
              optional("opset_version", out.opset_version),
              required("range_constraints", out.range_constraints),
              optional("verifiers", out.verifiers), optional("torch_version", out.torch_version),
              optional("guards_code", out.guards_code));
}

static void read(Reader& reader, json::Value value, PayloadMeta& out) {
  out.offset = static_cast<uint32_t>(value.offset());
  read_object(reader, value, required("path_name", out.path_name),
              optional("is_param", out.is_param), optional("use_pickle", out.use_pickle),
              optional("tensor_meta", out.tensor_meta));
}

static void read_version(Reader& reader, json::Value root, SchemaVersion& out) {
  read_object(reader, root, required("schema_version", out));
  if (reader.failed() || out.major == kMajor) return;
  json::MaybeValue at = root.member("schema_version");
  reader.fail(
      at ? *at : root,
      fmt::format("export schema {}.{}, expected {}.x; export again with torch 2.8 or newer "
                  "(2.11 to 2.13 are tested)",
                  out.major, out.minor, kMajor),
      code::kSchemaVersion);
}

void read(Reader& reader, json::Value value, Graph& out) {
  read_object(reader, value, required("inputs", out.inputs), required("outputs", out.outputs),
              required("nodes", out.nodes), optional("tensor_values", out.tensor_values),
              optional("sym_int_values", out.sym_int_values),
              optional("sym_bool_values", out.sym_bool_values),
              optional("is_single_tensor_return", out.is_single_tensor_return),
              optional("custom_obj_values", out.custom_obj_values),
              optional("sym_float_values", out.sym_float_values));
}

Result<ExportedProgram> read_program(const json::Document& document, LocTable& locs) {
  Reader reader(locs);
  ExportedProgram program;
  read_version(reader, document.root(), program.schema_version);
  if (!reader.failed()) read(reader, document.root(), program);
  if (reader.failed()) return std::move(reader).take_error();
  return program;
}

Result<PayloadConfig> read_payload_config(const json::Document& document, LocTable& locs) {
  Reader reader(locs);
  PayloadConfig config;
  read_object(reader, document.root(), required("config", config.config));
  if (reader.failed()) return std::move(reader).take_error();
  return config;
}

}  // namespace lathe::pt2
