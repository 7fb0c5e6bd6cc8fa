// The export schema, major version 8 (minor 6 to 20 seen), as structs: what an ExportedProgram's
// JSON says, nothing derived from it. Field names are the schema's. Unknown keys are ignored and
// missing ones keep the defaults below; a key that gives a struct its meaning must be there.
//
// Differences from the schema: unions are a tag and a variant; a TensorArgument is its name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "frontend/file/json.h"
#include "frontend/pt2/argument.h"

namespace lathe::pt2 {

struct NamedArgument {
  std::string name;  // as in the operator's schema; empty for higher-order ops
  Argument arg;
  std::optional<int64_t> kind;  // 1 positional, 2 keyword: how the call wrote it
};

// The keys of a node's metadata that PyTorch writes; see frontend/stacks for their syntax.
struct NodeMetadata {
  std::string stack_trace;
  std::string nn_module_stack;
  std::string source_fn_stack;
  std::string torch_fn;
  std::string from_node;
  std::string custom;
};

struct Node {
  std::string target;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  NodeMetadata metadata;
  std::optional<bool> is_hop_single_tensor_return;
  std::string name;     // empty in older files
  uint32_t offset = 0;  // byte in the file
};

struct Graph {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  Table<TensorMeta> tensor_values;
  Table<SymInt> sym_int_values;
  Table<SymBool> sym_bool_values;
  bool is_single_tensor_return = false;
  Table<CustomObjArgument> custom_obj_values;
  Table<SymFloat> sym_float_values;
};

using ConstantValue = std::variant<std::monostate, int64_t, double, std::string, bool>;

// What an input of the graph is. `arg` names the value in the graph, `target` the parameter,
// buffer, constant or object outside it.
struct InputSpec {
  enum class Tag : uint8_t {
    user_input,
    parameter,
    buffer,
    tensor_constant,
    custom_obj,
    token,
    constant_input,
    unknown,
  };
  Tag tag = Tag::unknown;
  Argument arg;            // as_none for constant_input
  std::string target;      // fully qualified name; of constant_input: its name in the signature
  bool persistent = true;  // of buffers
  ConstantValue value;     // of constant_input
  uint32_t offset = 0;
};

struct OutputSpec {
  enum class Tag : uint8_t {
    user_output,
    loss_output,
    buffer_mutation,
    gradient_to_parameter,
    gradient_to_user_input,
    user_input_mutation,
    token,
    parameter_mutation,
    unknown,
  };
  Tag tag = Tag::unknown;
  Argument arg;
  std::string target;  // what is mutated, or whose gradient it is
  uint32_t offset = 0;
};

struct GraphSignature {
  std::vector<InputSpec> input_specs;
  std::vector<OutputSpec> output_specs;
};

struct RangeConstraint {
  std::optional<int64_t> min_val;
  std::optional<int64_t> max_val;
};

struct ModuleCallSignature {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::string in_spec;  // JSON of a pytree spec
  std::string out_spec;
  std::optional<std::vector<std::string>> forward_arg_names;
};

struct ModuleCallEntry {
  std::string fqn;
  std::optional<ModuleCallSignature> signature;
};

struct NamedTupleDef {
  std::vector<std::string> field_names;
};

struct GraphModule {
  Graph graph;
  GraphSignature signature;
  std::vector<ModuleCallEntry> module_call_graph;
  Table<std::string> metadata;
  Table<NamedTupleDef> treespec_namedtuple_fields;
};

struct SchemaVersion {
  int64_t major = 0;
  int64_t minor = 0;
};

struct ExportedProgram {
  GraphModule graph_module;
  Table<int64_t> opset_version;
  Table<RangeConstraint> range_constraints;
  SchemaVersion schema_version;
  std::vector<std::string> verifiers;  // TRAINING: may mutate in place; ATEN: functional
  std::string torch_version = "<=2.4";
  std::vector<std::string> guards_code;
};

// Where the bytes of a weight or constant lie in the archive.
struct PayloadMeta {
  std::string path_name;  // "weight_0"
  bool is_param = false;
  bool use_pickle = false;  // of custom objects and tensor subclasses, which are not read
  std::optional<TensorMeta> tensor_meta;
  uint32_t offset = 0;
};
struct PayloadConfig {
  Table<PayloadMeta> config;  // by fully qualified name
};

// Checks the version first: another major is a `schema-version`. Other breaches of the schema are a
// `bad-model` at their line and column.
Result<ExportedProgram> read_program(const json::Document& document, LocTable& locs);
Result<PayloadConfig> read_payload_config(const json::Document& document, LocTable& locs);

}  // namespace lathe::pt2
