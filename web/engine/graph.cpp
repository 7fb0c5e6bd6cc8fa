// "graph": nodes, edges and, when asked for, a drawing of the graph after a step.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/graph/text.h"
#include "web/engine/op_class.h"
#include "web/engine/places.h"
#include "web/engine/workspace.h"
#include "web/layout/layout.h"

namespace lathe {
namespace {

// A graph as a page sees it: params, nodes, and one node a result at the end.
struct View {
  std::vector<const Node*> nodes;
  std::vector<Value> outputs;
  std::unordered_map<const Node*, int> numbers;
  struct Edge {
    int from;
    int result;
    int to;
    int operand;
  };
  std::vector<Edge> edges;

  int size() const { return static_cast<int>(nodes.size() + outputs.size()); }
};

View view_of(const Graph& graph) {
  View view;
  auto add = [&](const std::unique_ptr<Node>& node) {
    view.numbers[node.get()] = static_cast<int>(view.nodes.size());
    view.nodes.push_back(node.get());
  };
  for (const auto& param : graph.params) add(param);
  for (const auto& node : graph.nodes) add(node);
  auto link = [&](Value value, int to, size_t operand) {
    auto from = view.numbers.find(value.node);
    if (from != view.numbers.end())
      view.edges.push_back({from->second, value.index, to, static_cast<int>(operand)});
  };
  for (size_t i = 0; i < view.nodes.size(); ++i)
    for (size_t k = 0; k < view.nodes[i]->operands.size(); ++k)
      link(view.nodes[i]->operands[k], static_cast<int>(i), k);
  for (Value output : graph.outputs) {
    link(output, view.size(), 0);
    view.outputs.push_back(output);
  }
  return view;
}

bool is_constant(const Node& node) { return node.op->name == kConstantOp; }

Json node_json(const Node& node, const LocTable& locs, PlaceTable& places) {
  Json json{{"name", node.name},
            {"op", node.op->name},
            {"class", op_class_name(node.op->traits.op_class)}};
  json["types"] = Json::array();
  for (const TensorType& type : node.types) json["types"].push_back(to_string(type));
  Json attrs = Json::object();
  for (size_t i = 0; i < node.attrs.size(); ++i)
    if (node.attrs[i].index() != 0) attrs[node.op->attrs[i].name] = print(node.attrs[i]);
  if (!attrs.empty()) json["attrs"] = std::move(attrs);
  if (node.in_place) json["in_place"] = true;
  if (!node.bodies.empty()) json["inner_nodes"] = node.bodies.front()->nodes.size();
  if (std::string module = module_of(locs, node.loc); !module.empty()) json["module"] = module;
  places.write(node.loc, json);
  return json;
}

std::string type_label(const Node& node) {
  return node.types.empty() ? std::string() : to_string(node.types.front());
}

// ---- drawings -----------------------------------------------------------------------------------

struct DrawingOptions {
  LayoutOptions layout;
  double char_width = 7;
  bool has_constants = false;
};

// Constants are left out unless asked for: a page shows them as part of their readers.
Drawing draw(const View& view, const LocTable& locs, const DrawingOptions& options,
             std::vector<int>& drawn) {
  std::vector<LayoutNode> nodes;
  std::vector<int> place(static_cast<size_t>(view.size()), -1);
  for (int i = 0; i < view.size(); ++i) {
    LayoutNode node;
    const size_t at = static_cast<size_t>(i);
    size_t characters = 6;
    if (at < view.nodes.size()) {
      const Node& source = *view.nodes[at];
      if (is_constant(source) && !options.has_constants) continue;
      node.key = source.name;
      node.module = module_of(locs, source.loc);
      characters = std::max(source.op->name.size() + 2, type_label(source).size());
    } else {
      node.key = "return " + std::to_string(at - view.nodes.size());
    }
    node.width = static_cast<double>(std::min<size_t>(characters, 40)) * options.char_width + 20;
    node.height = 40;
    place[at] = static_cast<int>(nodes.size());
    drawn.push_back(i);
    nodes.push_back(std::move(node));
  }
  std::vector<std::pair<int, int>> edges;
  for (const View::Edge& edge : view.edges) {
    const int from = place[static_cast<size_t>(edge.from)];
    const int to = place[static_cast<size_t>(edge.to)];
    if (from >= 0 && to >= 0) edges.push_back({from, to});
  }
  return lay_out(nodes, edges, options.layout);
}

double rounded(double value) { return static_cast<double>(static_cast<int64_t>(value * 10)) / 10; }

Json rect_json(const Rect& rect) {
  return {rounded(rect.x), rounded(rect.y), rounded(rect.width), rounded(rect.height)};
}

Json drawing_json(const Drawing& drawing, const std::vector<int>& drawn, int num_nodes) {
  Json json{{"width", rounded(drawing.width)}, {"height", rounded(drawing.height)}};
  std::vector<Json> boxes(static_cast<size_t>(num_nodes));
  for (size_t i = 0; i < drawn.size(); ++i) {
    Json& box = boxes[static_cast<size_t>(drawn[i])];
    box = drawing.hidden_in[i] >= 0 ? Json(drawing.hidden_in[i]) : rect_json(drawing.nodes[i]);
  }
  json["boxes"] = boxes;  // a rectangle, the number of the cluster that hides it, or null
  json["clusters"] = Json::array();
  for (const Cluster& cluster : drawing.clusters)
    json["clusters"].push_back({{"key", cluster.key},
                                {"module", cluster.module},
                                {"parent", cluster.parent},
                                {"folded", cluster.is_folded},
                                {"nodes", cluster.num_nodes},
                                {"box", rect_json(cluster.rect)}});
  json["routes"] = Json::array();
  for (const Route& route : drawing.routes) {
    Json one{{"from", drawn[static_cast<size_t>(route.from)]},
             {"to", drawn[static_cast<size_t>(route.to)]}};
    if (route.from_cluster >= 0) one["from_cluster"] = route.from_cluster;
    if (route.to_cluster >= 0) one["to_cluster"] = route.to_cluster;
    one["points"] = Json::array();
    for (const Point& point : route.points) {
      one["points"].push_back(rounded(point.x));
      one["points"].push_back(rounded(point.y));
    }
    json["routes"].push_back(std::move(one));
  }
  return json;
}

// Each drawing keeps the order of the one of the step before, whichever steps were asked for: so
// those of the steps before are made, too. Steps that changed nothing share one.
Drawing draw_step(PipelineRun& run, size_t index, DrawingOptions options, std::vector<int>& drawn) {
  auto is_first = [&](size_t step) {
    return step == 0 || run.steps[step].graph != run.steps[step - 1].graph;
  };
  while (!is_first(index)) --index;
  Drawing drawing;
  for (size_t step = 0; step <= index; ++step) {
    if (!is_first(step)) continue;
    auto known = run.drawn.find(step);
    if (known == run.drawn.end() || step == index) {
      drawn.clear();
      drawing = draw(view_of(run.steps[step].graph->main()), run.locs, options, drawn);
      known = run.drawn.insert_or_assign(step, drawing.order).first;
    }
    options.layout.before = known->second;
  }
  return drawing;
}

Result<DrawingOptions> drawing_options(const Request& request, PipelineRun& run) {
  DrawingOptions options;
  LATHE_TRY(std::vector<std::string> folded, request.texts("folded"));
  LATHE_TRY(options.has_constants, request.flag("constants", false));
  LATHE_TRY(int64_t char_width, request.integer("char_width", 7));
  if (char_width < 1 || char_width > 100)
    return request.bad("char_width",
                       fmt::format("'char_width' is {}, expected 1 to 100", char_width));
  options.char_width = static_cast<double>(char_width);
  options.layout.folded.insert(folded.begin(), folded.end());
  std::string key = fmt::format("{} {}", options.has_constants, char_width);
  for (const std::string& cluster : options.layout.folded) key += "\n" + cluster;
  if (run.drawn_for != key) run.drawn.clear();
  run.drawn_for = std::move(key);
  return options;
}

const Node* find_node(const Graph& graph, const std::string& name) {
  for (const auto& node : graph.nodes)
    if (node->name == name) return node.get();
  return nullptr;
}

}  // namespace

Result<Answer> handle_graph(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  LATHE_TRY(size_t index, step_of(*run, request));
  if (!run->steps[index].graph)
    return request.bad("step",
                       fmt::format("step {} left a program, not a graph; see 'program'", index));
  const Graph* graph = &run->steps[index].graph->main();
  LATHE_TRY(std::string inside, request.text("inside", ""));
  if (!inside.empty()) {
    const Node* node = find_node(*graph, inside);
    if (!node || node->bodies.empty())
      return request.bad("inside", fmt::format("no node '{}' with a graph inside", inside));
    graph = node->bodies.front().get();
  }
  const View view = view_of(*graph);
  Answer answer;
  Json& json = answer.json;
  PlaceTable places(run->locs);
  json["nodes"] = Json::array();
  for (const Node* node : view.nodes) json["nodes"].push_back(node_json(*node, run->locs, places));
  for (Value output : view.outputs)
    json["nodes"].push_back(
        {{"op", "return"},
         {"class", "structure"},
         {"types", output ? Json::array({to_string(output.type())}) : Json::array()}});
  json["edges"] = Json::array();  // [from, result, to, operand]
  for (const View::Edge& edge : view.edges)
    json["edges"].push_back({edge.from, edge.result, edge.to, edge.operand});
  json["table"] = places.table();
  LATHE_TRY(bool is_drawn, request.flag("draw", false));
  if (!is_drawn) return answer;
  LATHE_TRY(DrawingOptions options, drawing_options(request, *run));
  std::vector<int> drawn;
  Drawing drawing = inside.empty() ? draw_step(*run, index, options, drawn)
                                   : draw(view, run->locs, options, drawn);
  json["drawing"] = drawing_json(drawing, drawn, view.size());
  return answer;
}

}  // namespace lathe
