// Nested drawings: the inside of each cluster is laid out alone, then stands as a box in the
// cluster around it. A line that crosses a border does so at a port, one for each source; ports are
// elements of both sides, so that lines inside and outside meet.
#include "web/layout/layout.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace lathe {
namespace {

// A cluster while it is built; [0] is the drawing itself.
struct Box {
  std::string module;
  std::string key;
  int parent = -1;
  int depth = 0;
  bool is_folded = false;
  int num_nodes = 0;
  std::map<std::string, int> runs;  // of inner modules so far
  std::vector<int> children;        // >= 0: a node; < 0: ~box, in execution order
  // Lines through the border, by the node that they come from.
  std::map<int, int> entries, exits;        // source -> element inside
  std::vector<Element> elements;            // entries, children, exits
  std::unordered_map<int, int> element_of;  // child -> element
  std::map<int, size_t> net_of;             // source -> net
  std::vector<Net> nets;
  std::vector<std::map<int, size_t>> target_of;  // of each net: element -> target
  Layered inside;
  Rect rect;
};

// "a.b.c" -> "a", "a.b", "a.b.c"
std::vector<std::string_view> prefixes(std::string_view module) {
  std::vector<std::string_view> parts;
  for (size_t dot = module.find('.'); dot != module.npos; dot = module.find('.', dot + 1))
    parts.push_back(module.substr(0, dot));
  if (!module.empty()) parts.push_back(module);
  return parts;
}

class Nesting {
 public:
  Nesting(const std::vector<LayoutNode>& nodes, const std::vector<std::pair<int, int>>& edges,
          const LayoutOptions& options)
      : nodes_(nodes), edges_(edges), options_(options) {}

  Drawing run() {
    build_boxes();
    for (auto [from, to] : edges_) add_edge(from, to);
    for (size_t box = boxes_.size(); box-- > 0;) lay_out_box(boxes_[box]);
    for (size_t box = 0; box < boxes_.size(); ++box) place(static_cast<int>(box));
    return finish();
  }

 private:
  Box& box_at(int box) { return boxes_[static_cast<size_t>(box)]; }
  const LayoutNode& node_at(int node) const { return nodes_[static_cast<size_t>(node)]; }

  void build_boxes() {
    boxes_.push_back({});
    std::vector<int> open = {0};
    for (size_t i = 0; i < nodes_.size(); ++i) {
      std::vector<std::string_view> path = prefixes(nodes_[i].module);
      size_t shared = 0;
      while (shared < path.size() && shared + 1 < open.size() &&
             box_at(open[shared + 1]).module == path[shared])
        ++shared;
      open.resize(shared + 1);
      for (; shared < path.size() && !box_at(open.back()).is_folded; ++shared)
        open.push_back(add_box(path[shared], open.back()));
      const int node = static_cast<int>(i);
      home_.push_back(open.back());
      if (!box_at(open.back()).is_folded) box_at(open.back()).children.push_back(node);
      for (int box : open) ++box_at(box).num_nodes;
    }
  }

  // Runs are counted in the box around them, so that a key does not depend on what is folded.
  int add_box(std::string_view module, int parent) {
    const int id = static_cast<int>(boxes_.size());
    const std::string_view last = module.substr(module.rfind('.') + 1);
    Box box;
    Box& outer = box_at(parent);
    box.key = outer.key.empty() ? std::string(last) : outer.key + "." + std::string(last);
    if (const int run = ++outer.runs[std::string(last)]; run > 1)
      box.key += "#" + std::to_string(run);
    box.module = std::string(module);
    box.parent = parent;
    box.depth = outer.depth + 1;
    box.is_folded = options_.folded.count(box.key) != 0;
    outer.children.push_back(~id);
    boxes_.push_back(std::move(box));
    return id;
  }

  // What stands for a node in the box around it: itself, or the folded box that hides it.
  int child_of(int node) { return box_at(home_of(node)).is_folded ? ~home_of(node) : node; }
  int home_of(int node) const { return home_[static_cast<size_t>(node)]; }
  int outer_of(int node) {
    const int home = home_of(node);
    return box_at(home).is_folded ? box_at(home).parent : home;
  }

  struct Step {  // a line inside one box
    int box;
    size_t net;
    size_t target;
  };
  struct Path {
    int from, to;
    std::vector<Step> steps;
  };

  void add_edge(int from, int to) {
    if (from < 0 || to <= from || static_cast<size_t>(to) >= nodes_.size()) return;
    const int first = child_of(from), last = child_of(to);
    if (first == last) return;
    // Two hidden ends make one line, whichever nodes they are.
    if (!drawn_.insert({first, last}).second) return;
    const int source = first;  // nets go by what is seen
    Path path{from, to, {}};
    int left = outer_of(from), right = outer_of(to), child = first;
    std::vector<std::pair<int, int>> down;  // boxes to enter, with the child inside each
    int inner = last;
    while (left != right) {
      if (box_at(left).depth >= box_at(right).depth) {
        const int exit = port(source, box_at(left).exits, kExit);
        path.steps.push_back(connect(left, source, child, exit));
        child = ~left;
        left = box_at(left).parent;
      } else {
        down.push_back({right, inner});
        inner = ~right;
        right = box_at(right).parent;
      }
    }
    path.steps.push_back(connect(left, source, child, inner));
    for (size_t i = down.size(); i-- > 0;) {
      const int entry = port(source, box_at(down[i].first).entries, kEntry);
      path.steps.push_back(connect(down[i].first, source, entry, down[i].second));
    }
    paths_.push_back(std::move(path));
  }

  // Ports are children with numbers of their own, beyond those of nodes.
  static constexpr int kEntry = 1 << 28;
  static constexpr int kExit = 1 << 29;
  int port(int source, std::map<int, int>& ports, int kind) {
    auto [entry, is_new] = ports.try_emplace(source, 0);
    if (is_new) entry->second = kind + next_port_++;
    return entry->second;
  }

  // Elements are numbered when the box is laid out; until then nets hold children.
  Step connect(int box, int source, int from, int to) {
    Box& b = box_at(box);
    auto [net, is_new] = b.net_of.try_emplace(source, b.nets.size());
    if (is_new) {
      b.nets.push_back({{from, 0}, {}});
      b.target_of.emplace_back();
    }
    auto [target, is_new_target] =
        b.target_of[net->second].try_emplace(to, b.nets[net->second].targets.size());
    if (is_new_target) b.nets[net->second].targets.push_back({to, 0});
    return {box, net->second, target->second};
  }

  void add_element(Box& box, int child, Element element) {
    box.element_of[child] = static_cast<int>(box.elements.size());
    box.elements.push_back(element);
  }

  Element element_of_child(int child) {
    const std::string& key = child >= 0 ? node_at(child).key : box_at(~child).key;
    Element element;
    element.width = child >= 0 ? node_at(child).width : box_at(~child).rect.width;
    element.height = child >= 0 ? node_at(child).height : box_at(~child).rect.height;
    if (auto old = options_.before.find(key); old != options_.before.end()) {
      element.has_place = true;
      element.place = old->second;
    }
    return element;
  }

  void lay_out_box(Box& box) {
    if (box.is_folded) {
      box.rect = {0, 0, options_.folded_width, options_.folded_height};
      return;
    }
    for (const auto& [source, child] : box.entries) add_element(box, child, {.pin = Pin::top});
    for (int child : box.children) add_element(box, child, element_of_child(child));
    for (const auto& [source, child] : box.exits) add_element(box, child, {.pin = Pin::bottom});
    for (auto& [source, net] : box.net_of) {
      Net& n = box.nets[net];
      n.source = end_at(box, n.source.element, source, false);
      for (NetEnd& target : n.targets) target = end_at(box, target.element, source, true);
    }
    box.inside = lay_out_ranks(box.elements, box.nets, options_.spacing);
    const double frame = box.parent < 0 ? 0 : options_.padding;
    const double title = box.parent < 0 ? 0 : options_.title_height;
    box.rect = {0, 0, box.inside.width + 2 * frame, box.inside.height + 2 * frame + title};
  }

  // Where a line meets a child: in the middle, or at the port of an open box.
  NetEnd end_at(Box& box, int child, int source, bool is_target) {
    NetEnd end{box.element_of[child], 0};
    if (child >= 0 || box_at(~child).is_folded) return end;
    Box& inner = box_at(~child);
    const std::map<int, int>& ports = is_target ? inner.entries : inner.exits;
    auto port = ports.find(source);
    if (port == ports.end()) return end;
    const int element = inner.element_of[port->second];
    end.offset = options_.padding + inner.inside.places[static_cast<size_t>(element)].x -
                 inner.rect.width / 2;
    return end;
  }

  // Outer boxes come before inner ones, so the box itself is in its place already.
  void place(int id) {
    Box& box = box_at(id);
    if (box.is_folded) return;
    const Point origin = origin_of(box);
    for (int child : box.children) {
      const size_t element = static_cast<size_t>(box.element_of[child]);
      const Point at = box.inside.places[element];
      Rect rect{origin.x + at.x, origin.y + at.y, box.elements[element].width,
                box.elements[element].height};
      if (child >= 0) {
        places_[child] = rect;
      } else {
        box_at(~child).rect = rect;
      }
    }
  }

  Point origin_of(const Box& box) const {
    if (box.parent < 0) return {0, 0};
    return {box.rect.x + options_.padding, box.rect.y + options_.padding + options_.title_height};
  }

  Drawing finish() {
    Drawing drawing;
    drawing.width = boxes_[0].rect.width;
    drawing.height = boxes_[0].rect.height;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const int node = static_cast<int>(i);
      const bool is_hidden = box_at(home_of(node)).is_folded;
      drawing.hidden_in.push_back(is_hidden ? home_of(node) - 1 : -1);
      drawing.nodes.push_back(is_hidden ? Rect{} : places_[node]);
      if (!is_hidden) drawing.order[nodes_[i].key] = places_[node].x + places_[node].width / 2;
    }
    for (size_t i = 1; i < boxes_.size(); ++i) {
      Box& box = boxes_[i];
      drawing.order[box.key] = box.rect.x + box.rect.width / 2;
      drawing.clusters.push_back(
          {box.key, box.module, box.parent - 1, box.is_folded, box.num_nodes, box.rect});
    }
    for (const Path& path : paths_) drawing.routes.push_back(route_of(path));
    return drawing;
  }

  Route route_of(const Path& path) {
    Route route{path.from, path.to, -1, -1, {}};
    if (int first = child_of(path.from); first < 0) route.from_cluster = ~first - 1;
    if (int last = child_of(path.to); last < 0) route.to_cluster = ~last - 1;
    for (const Step& step : path.steps) {
      const Box& box = box_at(step.box);
      const Point origin = origin_of(box);
      for (const Point& point : box.inside.routes[step.net][step.target]) {
        const Point at{origin.x + point.x, origin.y + point.y};
        if (!route.points.empty() && at.x == route.points.back().x && at.y == route.points.back().y)
          continue;
        route.points.push_back(at);
      }
    }
    return route;
  }

  const std::vector<LayoutNode>& nodes_;
  const std::vector<std::pair<int, int>>& edges_;
  const LayoutOptions& options_;
  std::vector<Box> boxes_;
  std::vector<int> home_;  // of each node: the innermost box, or the folded one that hides it
  std::set<std::pair<int, int>> drawn_;
  std::vector<Path> paths_;
  std::unordered_map<int, Rect> places_;
  int next_port_ = 0;
};

}  // namespace

Drawing lay_out(const std::vector<LayoutNode>& nodes, const std::vector<std::pair<int, int>>& edges,
                const LayoutOptions& options) {
  return Nesting(nodes, edges, options).run();
}

}  // namespace lathe
