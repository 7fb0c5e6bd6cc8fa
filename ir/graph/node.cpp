// Access to nodes and whole-graph edits.
#include "ir/graph/node.h"

#include <algorithm>
#include <unordered_set>

#include "ir/graph/op_def.h"

namespace lathe {
namespace {

// Where operand `i` of the row starts in the flattened operands, and how many it takes.
std::pair<size_t, size_t> operand_span(const Node& node, int i) {
  size_t start = 0;
  size_t list = 0;
  const auto& specs = node.op->operands;
  for (size_t k = 0; k < specs.size(); ++k) {
    size_t count = 1;
    if (specs[k].is_list()) {
      count = list < node.list_sizes.size() ? static_cast<size_t>(node.list_sizes[list]) : 0;
      ++list;
    }
    if (static_cast<int>(k) == i) return {start, count};
    start += count;
  }
  return {node.operands.size(), 0};
}

using NodeMap = std::unordered_map<const Node*, Node*>;

std::unique_ptr<Graph> clone_graph(const Graph& graph, NodeMap& copies);

std::unique_ptr<Node> clone_node(const Node& node, NodeMap& copies) {
  auto copy = std::make_unique<Node>();
  copy->op = node.op;
  copy->name = node.name;
  copy->list_sizes = node.list_sizes;
  copy->attrs = node.attrs;
  copy->types = node.types;
  copy->loc = node.loc;
  copy->in_place = node.in_place;
  copy->plan = node.plan;
  copies[&node] = copy.get();
  return copy;
}

std::unique_ptr<Graph> clone_graph(const Graph& graph, NodeMap& copies) {
  auto copy = std::make_unique<Graph>();
  copy->name = graph.name;
  for (const auto& param : graph.params) copy->params.push_back(clone_node(*param, copies));
  for (const auto& node : graph.nodes) copy->nodes.push_back(clone_node(*node, copies));
  // Operands are mapped in a second sweep, so that even a graph that is out of order is copied.
  auto map_value = [&](Value value) -> Value {
    const auto found = copies.find(value.node);
    return found == copies.end() ? value : Value{found->second, value.index};
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = *graph.nodes[i];
    for (Value operand : node.operands) copy->nodes[i]->operands.push_back(map_value(operand));
    for (const auto& body : node.bodies)
      copy->nodes[i]->bodies.push_back(clone_graph(*body, copies));
  }
  for (Value output : graph.outputs) copy->outputs.push_back(map_value(output));
  for (const Mutation& mutation : graph.mutations)
    copy->mutations.push_back({mutation.target, mutation.is_input, map_value(mutation.value)});
  return copy;
}

Value resolve(Value value, const std::map<Value, Value>& replacements) {
  // A cycle cannot run longer than the map is large.
  for (size_t step = 0; step < replacements.size(); ++step) {
    const auto found = replacements.find(value);
    if (found == replacements.end()) break;
    value = found->second;
  }
  return value;
}

}  // namespace

const TensorType& Value::type() const { return node->types[static_cast<size_t>(index)]; }

// --- nodes

Value Node::operand(int i) const {
  const auto [start, count] = operand_span(*this, i);
  return count > 0 && start < operands.size() ? operands[start] : Value{};
}

std::span<const Value> Node::operand_list(int i) const {
  const auto [start, count] = operand_span(*this, i);
  if (start + count > operands.size()) return {};
  return std::span<const Value>(operands).subspan(start, count);
}

bool Node::has_effects() const {
  if (op->traits.has_effects || in_place) return true;
  for (const auto& body : bodies)
    for (const auto& node : body->nodes)
      if (node->has_effects()) return true;
  return false;
}

std::string Node::bound_symbol() const {
  const auto* size = op->traits.binds_size ? std::get_if<Dim>(&attr("size")) : nullptr;
  return size != nullptr && !size->is_const() ? size->symbol_name() : "";
}

void collect_symbols(const Node& node, std::vector<std::string>& names) {
  for (const TensorType& type : node.types)
    for (const Dim& dim : type.shape) dim.collect_symbols(names);
  for (const Attr& attr : node.attrs) {
    if (const auto* dim = std::get_if<Dim>(&attr)) dim->collect_symbols(names);
    if (const auto* dims = std::get_if<std::vector<Dim>>(&attr))
      for (const Dim& dim : *dims) dim.collect_symbols(names);
  }
  for (const auto& body : node.bodies) {
    for (const auto& param : body->params) collect_symbols(*param, names);
    for (const auto& inner : body->nodes) collect_symbols(*inner, names);
  }
}

const Attr& Node::attr(std::string_view attr_name) const {
  static const Attr kNone;
  const int i = op->attr_index(attr_name);
  return i < 0 || static_cast<size_t>(i) >= attrs.size() ? kNone : attrs[static_cast<size_t>(i)];
}

bool Node::is_none(std::string_view attr_name) const {
  return std::holds_alternative<std::monostate>(attr(attr_name));
}

bool Node::bool_attr(std::string_view attr_name, bool fallback) const {
  const bool* value = std::get_if<bool>(&attr(attr_name));
  return value != nullptr ? *value : fallback;
}

int64_t Node::int_attr(std::string_view attr_name, int64_t fallback) const {
  const Attr& value = attr(attr_name);
  if (const auto* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* dim = std::get_if<Dim>(&value); dim != nullptr && dim->is_const())
    return dim->value();
  return fallback;
}

double Node::float_attr(std::string_view attr_name, double fallback) const {
  const Attr& value = attr(attr_name);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? 1 : 0;
  return fallback;
}

std::string Node::string_attr(std::string_view attr_name) const {
  const auto* text = std::get_if<std::string>(&attr(attr_name));
  return text != nullptr ? *text : "";
}

DType Node::dtype_attr(std::string_view attr_name, DType fallback) const {
  const DType* dtype = std::get_if<DType>(&attr(attr_name));
  return dtype != nullptr ? *dtype : fallback;
}

std::vector<int64_t> Node::ints_attr(std::string_view attr_name) const {
  const Attr& value = attr(attr_name);
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) return *integers;
  std::vector<int64_t> result;
  if (const auto* dims = std::get_if<std::vector<Dim>>(&value))
    for (const Dim& dim : *dims) result.push_back(dim.value());
  return result;
}

std::vector<Dim> Node::dims_attr(std::string_view attr_name) const {
  const Attr& value = attr(attr_name);
  if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) return *dims;
  std::vector<Dim> result;
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value))
    result.assign(integers->begin(), integers->end());
  return result;
}

// --- graphs

std::unique_ptr<Graph> Graph::clone() const {
  NodeMap copies;
  return clone_graph(*this, copies);
}

std::map<Value, std::vector<std::pair<Node*, int>>> Graph::uses() const {
  std::map<Value, std::vector<std::pair<Node*, int>>> result;
  for (const auto& node : nodes)
    for (size_t i = 0; i < node->operands.size(); ++i)
      if (node->operands[i])
        result[node->operands[i]].emplace_back(node.get(), static_cast<int>(i));
  return result;
}

void Graph::replace_uses(Value from, Value to) { replace_uses(std::map<Value, Value>{{from, to}}); }

void Graph::replace_uses(const std::map<Value, Value>& replacements) {
  if (replacements.empty()) return;
  auto replace = [&](Value& value) {
    if (value) value = resolve(value, replacements);
  };
  for (const auto& node : nodes) {
    for (Value& operand : node->operands) replace(operand);
    for (const auto& body : node->bodies) body->replace_uses(replacements);
  }
  for (Value& output : outputs) replace(output);
  for (Mutation& mutation : mutations) replace(mutation.value);
}

void Graph::substitute(const std::map<std::string, Dim>& symbols) {
  auto substitute_in = [&](Node& node) {
    for (TensorType& type : node.types)
      for (Dim& dim : type.shape) dim = dim.substitute(symbols);
    for (Attr& attr : node.attrs) {
      if (auto* dim = std::get_if<Dim>(&attr)) *dim = dim->substitute(symbols);
      if (auto* dims = std::get_if<std::vector<Dim>>(&attr))
        for (Dim& dim : *dims) dim = dim.substitute(symbols);
    }
    for (const auto& body : node.bodies) body->substitute(symbols);
  };
  for (const auto& param : params) substitute_in(*param);
  for (const auto& node : nodes) substitute_in(*node);
}

std::vector<std::string> Graph::bound_symbols() const {
  std::vector<std::string> names;
  for (const auto& node : nodes)
    if (std::string own = node->bound_symbol(); !own.empty()) names.push_back(std::move(own));
  return names;
}

bool Graph::erase_dead() {
  std::unordered_set<const Node*> live;
  for (Value output : outputs) live.insert(output.node);
  for (const Mutation& mutation : mutations) live.insert(mutation.value.node);
  bool has_changed = false;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (live.count(node->get()) == 0 && !(*node)->has_effects()) continue;
    live.insert(node->get());
    for (Value operand : (*node)->operands) live.insert(operand.node);
    for (const auto& body : (*node)->bodies) has_changed |= body->erase_dead();
  }
  const auto is_dead = [&](const std::unique_ptr<Node>& node) {
    return live.count(node.get()) == 0;
  };
  const auto first_dead = std::remove_if(nodes.begin(), nodes.end(), is_dead);
  has_changed |= first_dead != nodes.end();
  nodes.erase(first_dead, nodes.end());
  return has_changed;
}

}  // namespace lathe
