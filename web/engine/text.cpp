// "text" and "diff": the IR after a step, and what the step did to it, node by node.
#include <set>

#include "ir/graph/text.h"
#include "web/engine/places.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

struct Printed {
  const Node* node;
  std::string text;
};
using NodesByName = std::map<std::string, Printed>;

std::string key_of(const Graph& graph, const Node& node) {
  return graph.name == "main" ? node.name : graph.name + "." + node.name;
}

NodesByName nodes_of(const Module& module) {
  NodesByName nodes;
  for (const auto& graph : module.graphs)
    for (const auto& node : graph->nodes) nodes[key_of(*graph, *node)] = {node.get(), print(*node)};
  return nodes;
}

Json node_json(const std::string& name, const Printed& printed, PlaceTable& places) {
  Json json{{"name", name}, {"op", printed.node->op->name}, {"text", printed.text}};
  places.write(printed.node->loc, json);
  return json;
}

}  // namespace

Result<Answer> handle_text(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  LATHE_TRY(size_t index, step_of(*run, request));
  const Step& step = run->steps[index];
  Answer answer;
  answer.json["text"] = step.program ? print(*step.program) : print(*step.graph);
  return answer;
}

// In the order of the graphs; a node that only changed its text stands in "changed".
Result<Answer> handle_diff(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  LATHE_TRY(size_t index, step_of(*run, request));
  Answer answer;
  Json& json = answer.json;
  json = {{"removed", Json::array()}, {"added", Json::array()}, {"changed", Json::array()}};
  const Step& step = run->steps[index];
  json["lowered"] = step.program != nullptr;
  if (index == 0 || step.program || step.graph == run->steps[index - 1].graph) return answer;
  const Module& before = *run->steps[index - 1].graph;
  const NodesByName old_nodes = nodes_of(before), new_nodes = nodes_of(*step.graph);
  PlaceTable places(run->locs);
  for (const auto& graph : before.graphs)
    for (const auto& node : graph->nodes) {
      const std::string name = key_of(*graph, *node);
      if (!new_nodes.count(name))
        json["removed"].push_back(node_json(name, old_nodes.find(name)->second, places));
    }
  for (const auto& graph : step.graph->graphs)
    for (const auto& node : graph->nodes) {
      const std::string name = key_of(*graph, *node);
      const Printed& now = new_nodes.find(name)->second;
      auto then = old_nodes.find(name);
      if (then != old_nodes.end() && then->second.text == now.text) continue;
      Json one = node_json(name, now, places);
      if (then != old_nodes.end()) one["before"] = then->second.text;
      json[then == old_nodes.end() ? "added" : "changed"].push_back(std::move(one));
    }
  json["table"] = places.table();
  return answer;
}

}  // namespace lathe
