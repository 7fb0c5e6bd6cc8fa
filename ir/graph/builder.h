// Builds nodes. Checks operands and attributes against the row and infers types; keeps the first
// error, after which every call is a no-op that returns a null Value, so that code that builds
// stays plain.
#pragma once
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"

namespace lathe {

using NamedAttrs = std::vector<std::pair<std::string, Attr>>;

class Builder {
 public:
  // Appends to graph.nodes, or inserts before `before` when given (position in graph.nodes).
  Builder(Graph& graph, const Registry& ops, Loc loc) : graph_(graph), ops_(ops), loc_(loc) {}

  void set_insertion(size_t position) { position_ = position; }  // advances with every node made
  size_t insertion() const { return position_ == kEnd ? graph_.nodes.size() : position_; }
  void set_loc(Loc loc) { loc_ = loc; }
  Loc loc() const { return loc_; }
  Graph& graph() { return graph_; }
  const Registry& ops() const { return ops_; }

  // The first result of a new node; use call_all for several.
  Value call(std::string_view op, std::vector<Value> operands, NamedAttrs attrs = {});
  std::vector<Value> call_all(std::string_view op, std::vector<Value> operands,
                              NamedAttrs attrs = {}, std::vector<int> list_sizes = {});
  // Full control: name hint, explicit list sizes, in-place flag. Null on error.
  Node* create(const OpDef& op, std::vector<Value> operands, std::vector<int> list_sizes,
               NamedAttrs attrs, std::string name = {}, bool in_place = false);

  // A rank-0 constant; `dtype` is the constant's own.
  Value scalar(double value, DType dtype);
  Value param(TensorType type, std::string name);

  bool failed() const { return failed_; }
  const Diag& error() const { return error_; }
  void fail(Diag diag);  // keeps the first

 private:
  static constexpr size_t kEnd = static_cast<size_t>(-1);
  Graph& graph_;
  const Registry& ops_;
  Loc loc_;
  size_t position_ = kEnd;
  bool failed_ = false;
  Diag error_;
};

// A name not yet used in the graph: `hint`, or hint_1, hint_2, ...
std::string unique_name(const Graph& graph, const std::string& hint);

}  // namespace lathe
