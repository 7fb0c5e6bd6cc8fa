// The sweep: nodes move from the old list to the new one, names and uses are settled on the way.
#include "passes/analysis/rewrite.h"

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "fmt/format.h"

namespace lathe {
namespace {

class Sweep {
 public:
  Sweep(Module& module, Graph& graph, const Registry& ops, std::string_view pass)
      : module_(module), graph_(graph), pass_(pass), builder_(graph, ops, Loc::unknown()) {}

  Result<bool> run(const RewriteFn& visit) {
    // New nodes take names apart from all of these, also from those that come back later: two of
    // one name would have the builder look through the whole graph for each name that it gives.
    for (const auto& node : graph_.nodes) graph_.name_index.try_emplace(node->name, 1);
    for (const auto& param : graph_.params) graph_.name_index.try_emplace(param->name, 1);
    std::vector<std::unique_ptr<Node>> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    Status status = sweep(old, visit);
    // After an error what is left follows as it was, so that the graph can still be printed.
    for (std::unique_ptr<Node>& node : old) {
      if (node == nullptr) continue;
      for (Value& operand : node->operands) operand = renamed(operand);
      keep(std::move(node));
    }
    for (Value& output : graph_.outputs) output = renamed(output);
    for (Mutation& mutation : graph_.mutations) mutation.value = renamed(mutation.value);
    settle_names();
    graph_.name_index.clear();  // it knows neither the dropped names nor the settled ones
    if (!status.ok()) return std::move(status).error();
    return !replaced_.empty();
  }

 private:
  Status sweep(std::vector<std::unique_ptr<Node>>& old, const RewriteFn& visit) {
    for (std::unique_ptr<Node>& node : old) {
      for (Value& operand : node->operands) operand = renamed(operand);
      size_t mark = graph_.nodes.size();
      builder_.set_loc(node->loc);
      LATHE_TRY(Replacement replacement, visit(builder_, *node));
      if (builder_.failed()) return builder_.error();
      if (!replacement) {
        adopt(*node, mark, Value());
        keep(std::move(node));
        continue;
      }
      LATHE_CHECK(replacement->size() == node->types.size(),
                  fmt::format("'{}' replaced {} results of '{}' by {} values", pass_,
                              node->types.size(), node->name, replacement->size()));
      adopt(*node, mark, replacement->empty() ? Value() : replacement->front());
      replaced_.emplace(node.get(), *std::move(replacement));
      dropped_.push_back(std::move(node));
    }
    return Ok{};
  }

  Value renamed(Value value) const {
    auto found = replaced_.find(value.node);
    return found == replaced_.end() ? value : found->second[static_cast<size_t>(value.index)];
  }

  void keep(std::unique_ptr<Node> node) {
    taken_.insert(node->name);
    graph_.nodes.push_back(std::move(node));
  }

  // Gives the nodes made since `mark` their location, and the first replacement the old name.
  void adopt(const Node& old, size_t mark, Value first) {
    Loc derived = Loc::unknown();
    for (size_t i = mark; i < graph_.nodes.size(); ++i) {
      Node& node = *graph_.nodes[i];
      if (node.loc == old.loc) {
        if (derived.is_unknown()) derived = module_.locs.derive(pass_, {old.loc});
        node.loc = derived;
      }
      if (&node == first.node) {
        node.name = old.name;
        taken_.insert(node.name);
      } else {
        fresh_.push_back(&node);
      }
    }
  }

  void settle_names() {
    for (const auto& param : graph_.params) taken_.insert(param->name);
    std::unordered_map<std::string, int> next;
    for (Node* node : fresh_) {
      std::string stem = node->op->name;
      std::string name = stem;
      int& number = next[stem];
      while (!taken_.insert(name).second) name = fmt::format("{}_{}", stem, ++number);
      node->name = name;
    }
  }

  Module& module_;
  Graph& graph_;
  std::string pass_;
  Builder builder_;
  std::unordered_map<const Node*, std::vector<Value>> replaced_;
  std::vector<std::unique_ptr<Node>> dropped_;  // kept alive: keys of replaced_
  std::unordered_set<std::string> taken_;
  std::vector<Node*> fresh_;
};

void collect(Graph& graph, std::vector<Graph*>& graphs) {
  for (const auto& node : graph.nodes)
    for (const auto& body : node->bodies) collect(*body, graphs);
  graphs.push_back(&graph);
}

}  // namespace

Result<bool> rewrite(Module& module, Graph& graph, const Registry& ops, std::string_view pass,
                     const RewriteFn& visit) {
  return Sweep(module, graph, ops, pass).run(visit);
}

std::vector<Graph*> all_graphs(Module& module) {
  std::vector<Graph*> graphs;
  for (const auto& graph : module.graphs) collect(*graph, graphs);
  return graphs;
}

Result<bool> rewrite_all(Module& module, const Registry& ops, std::string_view pass,
                         const RewriteFn& visit) {
  bool is_changed = false;
  for (Graph* graph : all_graphs(module)) {
    LATHE_TRY(const bool has_changed, rewrite(module, *graph, ops, pass, visit));
    is_changed = is_changed || has_changed;
  }
  return is_changed;
}

}  // namespace lathe
