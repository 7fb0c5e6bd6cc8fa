// Builds nodes. Checks operands and attributes against the row and infers types; keeps the first
// error, after which every call is a no-op that returns a null Value, so that code that builds
// stays plain.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/node.h"
#include "ir/graph/op_def.h"
#include "ir/support/result.h"
#include "ir/type/encoding.h"

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
  // Full control: name hint, explicit list sizes (may be empty for a row with at most one list),
  // in-place flag, bodies. Trailing optional operands may be left out. A row with bodies and
  // without `infer` takes its types from the outputs of its first body. An in-place node has the
  // type of its first operand. Null on error.
  Node* create(const OpDef& op, std::vector<Value> operands, std::vector<int> list_sizes,
               NamedAttrs attrs, std::string name = {}, bool in_place = false,
               std::vector<std::unique_ptr<Graph>> bodies = {});

  // A rank-0 constant; `dtype` is the constant's own.
  Value scalar(double value, DType dtype);
  Value integer(int64_t value, DType dtype);  // the same, exact beyond 2^53
  Value param(TensorType type, std::string name);

  // While a model is imported, what values stand for, which the graph itself does not know. Complex
  // numbers are pairs in a last dim of 2 that PyTorch's shape does not have.
  void mark(Value value, Encoding encoding) {
    if (value && encoding != Encoding::none) encodings_[value] = encoding;
  }
  void mark_complex(Value value) { mark(value, Encoding::complex); }
  Encoding encoding(Value value) const {
    const auto found = encodings_.find(value);
    return found == encodings_.end() ? Encoding::none : found->second;
  }
  bool is_complex(Value value) const { return encoding(value) == Encoding::complex; }

  bool failed() const { return failed_; }
  const Diag& error() const { return error_; }
  void fail(Diag diag);  // keeps the first

 private:
  Status check_operands(const OpDef& op, std::vector<Value>& operands,
                        std::vector<int>& list_sizes) const;
  Result<std::vector<Attr>> fill_attrs(const OpDef& op, NamedAttrs attrs) const;
  Result<std::vector<TensorType>> infer_types(const Node& node) const;

  static constexpr size_t kEnd = static_cast<size_t>(-1);
  Graph& graph_;
  const Registry& ops_;
  Loc loc_;
  size_t position_ = kEnd;
  bool failed_ = false;
  Diag error_;
  std::map<Value, Encoding> encodings_;
};

// A name not yet used in the graph, reserved from now on: `hint`, or hint_1, hint_2, ...
// Characters that text IR does not allow in names become '_'.
std::string unique_name(const Graph& graph, const std::string& hint);

// The attribute in the kind that the row wants (an integer for a number or a Dim, integers for
// Dims, ...), or an error that names the attribute.
Result<Attr> convert_attr(const OpDef& op, const AttrSpec& spec, Attr value);

}  // namespace lathe
