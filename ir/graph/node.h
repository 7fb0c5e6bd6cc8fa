// The tensor graph: one node type for every op.
//
// Meaning. A graph is a list of nodes in execution order, in SSA form: each node's results are
// defined once, before use. Operands, attributes and result types are as the node's op row says.
// Values are tensors; layouts say where elements lie and never change a value. A node with
// `in_place` overwrites its first operand with its result (op "add" prints as "add_"); such nodes
// exist only before functionalize, and the order of nodes is then part of the meaning. Without
// in-place nodes every node is pure.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/support/loc.h"
#include "ir/type/guard.h"
#include "ir/type/tensor_type.h"

namespace lathe {

struct OpDef;
struct Node;
struct Graph;

// One result of a node; {nullptr, 0} is an omitted optional operand.
struct Value {
  Node* node = nullptr;
  int index = 0;
  explicit operator bool() const { return node != nullptr; }
  const TensorType& type() const;
  friend bool operator==(Value a, Value b) { return a.node == b.node && a.index == b.index; }
  friend bool operator!=(Value a, Value b) { return !(a == b); }
  friend bool operator<(Value a, Value b) {
    return a.node != b.node ? a.node < b.node : a.index < b.index;
  }
};

// An attribute value. monostate is Python's None. Sizes that may be symbolic are Dim or
// vector<Dim>.
using Attr =
    std::variant<std::monostate, bool, int64_t, double, std::string, DType, Dim, std::vector<bool>,
                 std::vector<int64_t>, std::vector<double>, std::vector<Dim>, Layout>;

// How a node becomes launches, once that was chosen. It has no meaning: the value stays the same.
struct KernelPlan {
  std::string kind;  // a row of passes/kernels
  std::vector<int64_t> tile =
      {};  // rows and vectors of a contraction; empty: the kind's own choice
  friend bool operator==(const KernelPlan&, const KernelPlan&) = default;
};

struct Node {
  const OpDef* op = nullptr;    // never null
  std::string name;             // "linear_3": unique in its graph; result i > 0 prints as "name.i"
  std::vector<Value> operands;  // flattened; list operands take list_sizes entries each
  std::vector<int> list_sizes;  // one entry per list operand of the row, in order
  std::vector<Attr> attrs;      // aligned with the row's attrs
  std::vector<TensorType> types;               // one per result
  std::vector<std::unique_ptr<Graph>> bodies;  // of `fused` and control-flow ops
  Loc loc;
  bool in_place = false;
  std::optional<KernelPlan> plan = {};

  // What the row alone does not tell: whether this node or one in its bodies has effects.
  bool has_effects() const;
  // The symbol that a run binds here (Traits::binds_size); empty: none, or it is a number already.
  std::string bound_symbol() const;
  Value result(int index = 0) { return {this, index}; }

  // Operand `i` of the row: one value (maybe null), or the values of a list operand.
  Value operand(int i) const;
  std::span<const Value> operand_list(int i) const;

  // Typed attribute access by name. The builder checked kinds against the row, so these do not
  // fail; a None gives the fallback.
  const Attr& attr(std::string_view name) const;
  bool is_none(std::string_view name) const;
  bool bool_attr(std::string_view name, bool fallback = false) const;
  int64_t int_attr(std::string_view name, int64_t fallback = 0) const;
  double float_attr(std::string_view name, double fallback = 0) const;  // also reads int and bool
  std::string string_attr(std::string_view name) const;
  DType dtype_attr(std::string_view name, DType fallback) const;
  std::vector<int64_t> ints_attr(std::string_view name) const;
  std::vector<Dim> dims_attr(std::string_view name) const;
};

// A buffer, parameter or input whose contents the run replaces, as the exporter or functionalize
// found.
struct Mutation {
  std::string target;     // fully qualified name of the weight, or name of the param
  bool is_input = false;  // the target is a param
  Value value;            // its new contents
};

// Adds the symbols of types and attributes, the node's and those of its bodies, each once.
void collect_symbols(const Node& node, std::vector<std::string>& names);

// A function: params in, values out. Params are nodes of op "param" and stand in `params`, not in
// `nodes`.
struct Graph {
  std::string name = "main";
  std::vector<std::unique_ptr<Node>> params;
  std::vector<std::unique_ptr<Node>> nodes;  // in execution order
  std::vector<Value> outputs;                // repeats and params allowed
  std::vector<Mutation> mutations;           // written back after the run

  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  std::unique_ptr<Graph> clone() const;  // deep; node pointers differ, names and locations stay
  // Uses of every value, in order: (user, operand index); graph outputs are not listed.
  std::map<Value, std::vector<std::pair<Node*, int>>> uses() const;
  void replace_uses(Value from, Value to);  // operands (also inside bodies), outputs, mutations
  // Many replacements in one sweep; chains (a -> b, b -> c) are followed to their end.
  void replace_uses(const std::map<Value, Value>& replacements);
  // The symbols that its nodes bind in a run, in order: sizes that elements of tensors decide, and
  // not the caller.
  std::vector<std::string> bound_symbols() const;
  // Replaces symbols in types and attributes, in bodies too.
  void substitute(const std::map<std::string, Dim>& symbols);
  // Removes nodes without users or effects, in bodies too; true when something went. In-place
  // nodes count as effects.
  bool erase_dead();

  // The names in use and the next suffix to try for each. unique_name keeps it, so that a name
  // costs no scan; it may hold names of erased nodes.
  mutable std::unordered_map<std::string, int> name_index;
};

// Raw bytes of a weight or constant: where they lie and who keeps them alive. Never copied by the
// IR.
struct TensorData {
  TensorType type;                    // static
  std::vector<int64_t> strides;       // in elements, as stored
  const std::byte* bytes = nullptr;   // null: absent (a graph without weights)
  size_t num_bytes = 0;               // readable at `bytes`
  std::shared_ptr<const void> owner;  // the mapping or vector behind `bytes`
};

enum class WeightKind : uint8_t { parameter, buffer, constant };
struct Weight {
  WeightKind kind = WeightKind::parameter;
  bool is_persistent = true;  // of buffers
  TensorData data;
};

// What one file holds: graphs, the weights they name, symbols with ranges, and every location.
struct Module {
  LocTable locs;
  std::map<std::string, DimRange> dims;  // ranges of symbols
  std::map<std::string, int64_t> hints;  // example value of a symbol at capture
  std::vector<Guard> guards;             // of symbols, beside their ranges
  std::map<std::string, Weight>
      weights;  // by fully qualified name; `constant {name = "..."}` refers here
  std::vector<std::unique_ptr<Graph>> graphs;  // [0] is the entry

  Graph& main() { return *graphs.front(); }
  const Graph& main() const { return *graphs.front(); }
};

}  // namespace lathe
