// Structural hashes of graphs and modules: everything that has a meaning, in order; no names of
// values, no locations, no bytes of weights.
#include <unordered_map>

#include "ir/graph/op_def.h"
#include "ir/graph/verify.h"
#include "ir/support/hash.h"

namespace lathe {
namespace {

uint64_t word(int64_t value) { return static_cast<uint64_t>(value); }

struct AttrHasher {
  Hasher& hasher;

  void operator()(std::monostate) const { hasher.add(uint64_t{0}); }
  void operator()(bool value) const { hasher.add(uint64_t{value}); }
  void operator()(int64_t value) const { hasher.add(word(value)); }
  void operator()(int value) const { hasher.add(word(value)); }
  void operator()(double value) const {
    if (value != value)  // the text form has one NaN
      hasher.add(std::string_view("nan"));
    else
      hasher.add(value);
  }
  void operator()(const std::string& value) const { hasher.add(std::string_view(value)); }
  void operator()(DType value) const { hasher.add(static_cast<uint64_t>(value)); }
  void operator()(const Dim& value) const { hasher.add(value.hash()); }
  template <class T>
  void operator()(const std::vector<T>& list) const {
    hasher.add(uint64_t{list.size()});
    for (const auto& element : list) (*this)(T(element));
  }
};

class GraphHasher {
 public:
  uint64_t run(const Graph& graph) {
    hasher_.add(uint64_t{graph.params.size()}).add(uint64_t{graph.nodes.size()});
    for (const auto& param : graph.params) {
      number(*param);
      add(param->types);
    }
    for (const auto& node : graph.nodes) add(*node);
    hasher_.add(uint64_t{graph.outputs.size()});
    for (Value output : graph.outputs) add(output);
    hasher_.add(uint64_t{graph.mutations.size()});
    for (const Mutation& mutation : graph.mutations) add(graph, mutation);
    return hasher_.value();
  }

 private:
  void number(const Node& node) { numbers_.emplace(&node, numbers_.size() + 1); }

  void add(const Node& node) {
    hasher_.add(std::string_view(node.op->name)).add(uint64_t{node.in_place});
    hasher_.add(uint64_t{node.operands.size()});
    for (Value operand : node.operands) add(operand);
    for (int size : node.list_sizes) hasher_.add(word(size));
    for (const Attr& attr : node.attrs) {
      hasher_.add(uint64_t{attr.index()});
      std::visit(AttrHasher{hasher_}, attr);
    }
    add(node.types);
    hasher_.add(uint64_t{node.bodies.size()});
    for (const auto& body : node.bodies) hasher_.add(structural_hash(*body));
    number(node);
  }

  void add(Value value) {
    const auto found = numbers_.find(value.node);
    hasher_.add(uint64_t{found == numbers_.end() ? 0 : found->second});
    hasher_.add(word(value.index));
  }

  void add(const std::vector<TensorType>& types) {
    hasher_.add(uint64_t{types.size()});
    for (const TensorType& type : types) {
      hasher_.add(static_cast<uint64_t>(type.dtype));
      AttrHasher{hasher_}(type.shape);
      AttrHasher{hasher_}(type.layout);
    }
  }

  // An input counts by its position, since its name is only a name.
  void add(const Graph& graph, const Mutation& mutation) {
    if (!mutation.is_input) hasher_.add(std::string_view(mutation.target));
    for (const auto& param : graph.params)
      if (mutation.is_input && param->name == mutation.target) add(param->result());
    add(mutation.value);
  }

  Hasher hasher_;
  std::unordered_map<const Node*, size_t> numbers_;
};

void add_bound(Hasher& hasher, const std::optional<int64_t>& bound) {
  hasher.add(uint64_t{bound.has_value()}).add(word(bound.value_or(0)));
}

}  // namespace

uint64_t structural_hash(const Graph& graph) { return GraphHasher().run(graph); }

uint64_t structural_hash(const Module& module) {
  Hasher hasher;
  for (const auto& [name, range] : module.dims) {
    hasher.add(std::string_view(name));
    add_bound(hasher, range.min);
    add_bound(hasher, range.max);
  }
  for (const auto& graph : module.graphs) hasher.add(structural_hash(*graph));
  return hasher.value();
}

}  // namespace lathe
