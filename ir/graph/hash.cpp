// Canonical forms of graphs and modules and their hashes: everything that has a meaning, in order;
// no names of values, no locations, no bytes of weights.
#include <unordered_map>

#include "ir/graph/op_def.h"
#include "ir/graph/verify.h"
#include "ir/support/canonical.h"
#include "ir/support/hash.h"

namespace lathe {
namespace {

uint64_t word(int64_t value) { return static_cast<uint64_t>(value); }

struct AttrWriter {
  CanonicalBytes& bytes;

  void operator()(std::monostate) const { bytes.add(uint64_t{0}); }
  void operator()(bool value) const { bytes.add(uint64_t{value}); }
  void operator()(int64_t value) const { bytes.add(word(value)); }
  void operator()(int value) const { bytes.add(word(value)); }
  void operator()(double value) const {
    if (value != value)  // the text form has one NaN
      bytes.add(std::string_view("nan"));
    else
      bytes.add(value);
  }
  void operator()(const std::string& value) const { bytes.add(std::string_view(value)); }
  void operator()(DType value) const { bytes.add(static_cast<uint64_t>(value)); }
  void operator()(const Dim& value) const { bytes.add(std::string_view(value.str())); }
  template <class T>
  void operator()(const std::vector<T>& list) const {
    bytes.add(uint64_t{list.size()});
    for (const auto& element : list) (*this)(T(element));
  }
};

class GraphWriter {
 public:
  std::string run(const Graph& graph) {
    bytes_.add(uint64_t{graph.params.size()}).add(uint64_t{graph.nodes.size()});
    for (const auto& param : graph.params) {
      number(*param);
      add(param->types);
    }
    for (const auto& node : graph.nodes) add(*node);
    bytes_.add(uint64_t{graph.outputs.size()});
    for (Value output : graph.outputs) add(output);
    bytes_.add(uint64_t{graph.mutations.size()});
    for (const Mutation& mutation : graph.mutations) add(graph, mutation);
    return bytes_.take();
  }

 private:
  void number(const Node& node) { numbers_.emplace(&node, numbers_.size() + 1); }

  void add(const Node& node) {
    bytes_.add(std::string_view(node.op->name)).add(uint64_t{node.in_place});
    bytes_.add(uint64_t{node.operands.size()});
    for (Value operand : node.operands) add(operand);
    bytes_.add(node.list_sizes.size());
    for (int size : node.list_sizes) bytes_.add(word(size));
    bytes_.add(node.attrs.size());
    for (const Attr& attr : node.attrs) {
      bytes_.add(uint64_t{attr.index()});
      std::visit(AttrWriter{bytes_}, attr);
    }
    add(node.types);
    bytes_.add(uint64_t{node.bodies.size()});
    for (const auto& body : node.bodies) bytes_.add(std::string_view(canonical_form(*body)));
    bytes_.add(uint64_t{node.plan.has_value()});
    if (node.plan) {
      bytes_.add(std::string_view(node.plan->kind));
      AttrWriter{bytes_}(node.plan->tile);
    }
    number(node);
  }

  void add(Value value) {
    const auto found = numbers_.find(value.node);
    bytes_.add(uint64_t{found == numbers_.end() ? 0 : found->second});
    bytes_.add(word(value.index));
  }

  void add(const std::vector<TensorType>& types) {
    bytes_.add(uint64_t{types.size()});
    for (const TensorType& type : types) {
      bytes_.add(static_cast<uint64_t>(type.dtype));
      AttrWriter{bytes_}(type.shape);
      AttrWriter{bytes_}(type.layout);
    }
  }

  // An input counts by its position, since its name is only a name.
  void add(const Graph& graph, const Mutation& mutation) {
    bytes_.add(uint64_t{mutation.is_input});
    if (!mutation.is_input) bytes_.add(std::string_view(mutation.target));
    for (const auto& param : graph.params)
      if (mutation.is_input && param->name == mutation.target) add(param->result());
    add(mutation.value);
  }

  CanonicalBytes bytes_;
  std::unordered_map<const Node*, size_t> numbers_;
};

void add_bound(CanonicalBytes& bytes, const std::optional<int64_t>& bound) {
  bytes.add(uint64_t{bound.has_value()}).add(word(bound.value_or(0)));
}

}  // namespace

std::string canonical_form(const Graph& graph) { return GraphWriter().run(graph); }

std::string canonical_form(const Module& module) {
  CanonicalBytes bytes;
  bytes.add(module.dims.size());
  for (const auto& [name, range] : module.dims) {
    bytes.add(std::string_view(name));
    add_bound(bytes, range.min);
    add_bound(bytes, range.max);
  }
  bytes.add(module.guards.size());
  for (const Guard& guard : module.guards) bytes.add(std::string_view(to_string(guard)));
  for (const auto& graph : module.graphs) bytes.add(std::string_view(canonical_form(*graph)));
  return bytes.take();
}

uint64_t structural_hash(const Graph& graph) { return Hasher().add(canonical_form(graph)).value(); }
uint64_t structural_hash(const Module& module) {
  return Hasher().add(canonical_form(module)).value();
}

}  // namespace lathe
