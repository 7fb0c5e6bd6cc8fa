// Draws a graph as nested boxes: modules hold what was called inside them and fold to one box.
//
// Nodes are in execution order. A group of neighbours in that order with one module path becomes a
// cluster; since such runs are convex, folding them never makes a circle. A module that is left and
// entered again is several clusters, numbered.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "web/layout/layered.h"

namespace lathe {

struct LayoutNode {
  std::string key;     // unique; what stability goes by
  std::string module;  // "encoder.layers.3.proj"; empty: outside of all
  double width = 0;
  double height = 0;
};

struct LayoutOptions {
  std::set<std::string> folded = {};          // keys of clusters
  std::map<std::string, double> before = {};  // Drawing::order of an earlier drawing
  Spacing spacing = {};
  double padding = 12;        // inside a cluster's border
  double title_height = 20;   // and above its content
  double folded_width = 140;  // of a cluster that is folded
  double folded_height = 40;
};

struct Rect {
  double x = 0, y = 0, width = 0, height = 0;
};

struct Cluster {
  std::string key;  // its module path, with "#2" and so on behind a part that runs again
  std::string module;
  int parent = -1;  // cluster around it
  bool is_folded = false;
  int num_nodes = 0;  // with those of inner clusters
  Rect rect;
};

// From a node, or the folded cluster that hides it, to another: from lower edge to upper edge.
struct Route {
  int from = 0, to = 0;                    // nodes; of several hidden ones, the first
  int from_cluster = -1, to_cluster = -1;  // when hidden
  std::vector<Point> points;
};

struct Drawing {
  std::vector<Rect> nodes;        // of hidden ones, empty
  std::vector<int> hidden_in;     // the folded cluster that hides a node, or -1
  std::vector<Cluster> clusters;  // outer before inner; those inside a folded one are left out
  std::vector<Route> routes;
  std::map<std::string, double> order;  // the middle of each drawn box, by key
  double width = 0;
  double height = 0;
};

// `edges` are pairs of indices; those that do not go to a later node are left out. The same input
// gives the same drawing.
Drawing lay_out(const std::vector<LayoutNode>& nodes, const std::vector<std::pair<int, int>>& edges,
                const LayoutOptions& options = {});

}  // namespace lathe
