// Drawings: no two boxes overlap, lines go down, modules hold their nodes, and what was drawn
// before keeps its order.
#include "web/layout/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lathe {
namespace {

using Edges = std::vector<std::pair<int, int>>;

struct Model {
  std::vector<LayoutNode> nodes;
  Edges edges;
};

// Blocks of residual layers inside modules, with a mask that all of them read.
Model transformer(int num_blocks) {
  Model model;
  auto add = [&](std::string key, std::string module, std::vector<int> from) {
    const int id = static_cast<int>(model.nodes.size());
    model.nodes.push_back({std::move(key), std::move(module), 60.0 + (id % 5) * 20, 40});
    for (int f : from) model.edges.push_back({f, id});
    return id;
  };
  int x = add("x", "", {});
  const int mask = add("mask", "", {});
  for (int b = 0; b < num_blocks; ++b) {
    const std::string block = "layers." + std::to_string(b), name = std::to_string(b);
    const int norm = add("norm" + name, block + ".norm", {x});
    const int q = add("q" + name, block + ".attention.q", {norm});
    const int k = add("k" + name, block + ".attention.k", {norm});
    const int v = add("v" + name, block + ".attention.v", {norm});
    const int scores = add("scores" + name, block + ".attention", {q, k, mask});
    const int mixed = add("mixed" + name, block + ".attention", {scores, v});
    const int out = add("out" + name, block + ".attention.out", {mixed});
    x = add("sum" + name, block, {out, x});
  }
  add("return", "", {x});
  return model;
}

Model random_model(int num_nodes, uint32_t seed) {
  std::mt19937 random(seed);
  Model model;
  for (int i = 0; i < num_nodes; ++i) {
    const std::string module = "m" + std::to_string(i / 7) + ".n" + std::to_string(i / 3 % 4);
    model.nodes.push_back({"n" + std::to_string(i), i % 11 == 0 ? "" : module,
                           20.0 + static_cast<double>(random() % 100), 20});
    for (uint32_t e = random() % 3; i > 0 && e-- > 0;)
      model.edges.push_back({static_cast<int>(random() % static_cast<uint32_t>(i)), i});
  }
  return model;
}

bool overlap(const Rect& a, const Rect& b) {
  constexpr double kSlack = 1e-6;
  return a.x + a.width > b.x + kSlack && b.x + b.width > a.x + kSlack &&
         a.y + a.height > b.y + kSlack && b.y + b.height > a.y + kSlack;
}

bool holds(const Rect& outer, const Rect& inner) {
  constexpr double kSlack = 1e-6;
  return inner.x >= outer.x - kSlack && inner.y >= outer.y - kSlack &&
         inner.x + inner.width <= outer.x + outer.width + kSlack &&
         inner.y + inner.height <= outer.y + outer.height + kSlack;
}

void expect_no_overlaps(const Model& model, const Drawing& drawing) {
  const Rect all{0, 0, drawing.width, drawing.height};
  for (size_t i = 0; i < model.nodes.size(); ++i) {
    if (drawing.hidden_in[i] >= 0) continue;
    EXPECT_TRUE(holds(all, drawing.nodes[i])) << model.nodes[i].key;
    for (size_t k = i + 1; k < model.nodes.size(); ++k)
      if (drawing.hidden_in[k] < 0) {
        EXPECT_FALSE(overlap(drawing.nodes[i], drawing.nodes[k]))
            << model.nodes[i].key << " and " << model.nodes[k].key;
      }
  }
  for (size_t i = 0; i < drawing.clusters.size(); ++i)
    for (size_t k = i + 1; k < drawing.clusters.size(); ++k)
      EXPECT_TRUE(holds(drawing.clusters[i].rect, drawing.clusters[k].rect) ||
                  !overlap(drawing.clusters[i].rect, drawing.clusters[k].rect))
          << drawing.clusters[i].key << " and " << drawing.clusters[k].key;
}

void expect_lines_go_down(const Drawing& drawing) {
  for (const Route& route : drawing.routes) {
    ASSERT_GE(route.points.size(), 2u);
    for (size_t i = 1; i < route.points.size(); ++i)
      EXPECT_GE(route.points[i].y, route.points[i - 1].y - 1e-6) << route.from << "-" << route.to;
  }
}

TEST(Layout, BoxesDoNotOverlapAndLinesGoDown) {
  Model model = transformer(4);
  Drawing drawing = lay_out(model.nodes, model.edges);
  expect_no_overlaps(model, drawing);
  expect_lines_go_down(drawing);
  EXPECT_EQ(drawing.routes.size(), model.edges.size());
  for (auto [from, to] : model.edges) {
    const Rect& a = drawing.nodes[static_cast<size_t>(from)];
    const Rect& b = drawing.nodes[static_cast<size_t>(to)];
    EXPECT_LE(a.y + a.height, b.y);
  }
}

TEST(Layout, HoldsForAnyGraph) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Model model = random_model(static_cast<int>(seed) * 3, seed);
    LayoutOptions options;
    for (int i = 0; i < 20; i += 3) options.folded.insert("m" + std::to_string(i));
    for (const LayoutOptions& o : {LayoutOptions(), options}) {
      Drawing drawing = lay_out(model.nodes, model.edges, o);
      expect_no_overlaps(model, drawing);
      expect_lines_go_down(drawing);
    }
  }
}

TEST(Layout, LinesStartAndEndAtTheirBoxes) {
  Model model = transformer(2);
  Drawing drawing = lay_out(model.nodes, model.edges);
  for (const Route& route : drawing.routes) {
    const Rect& from = drawing.nodes[static_cast<size_t>(route.from)];
    const Rect& to = drawing.nodes[static_cast<size_t>(route.to)];
    EXPECT_NEAR(route.points.front().x, from.x + from.width / 2, 1e-6);
    EXPECT_NEAR(route.points.front().y, from.y + from.height, 1e-6);
    EXPECT_NEAR(route.points.back().x, to.x + to.width / 2, 1e-6);
    EXPECT_NEAR(route.points.back().y, to.y, 1e-6);
  }
}

TEST(Layout, ModulesHoldWhatTheyCalled) {
  Model model = transformer(3);
  Drawing drawing = lay_out(model.nodes, model.edges);
  auto cluster = std::find_if(drawing.clusters.begin(), drawing.clusters.end(),
                              [](const Cluster& c) { return c.key == "layers.1.attention"; });
  ASSERT_NE(cluster, drawing.clusters.end());
  EXPECT_EQ(cluster->num_nodes, 6);
  for (size_t i = 0; i < model.nodes.size(); ++i)
    EXPECT_EQ(model.nodes[i].module.rfind("layers.1.attention", 0) == 0,
              holds(cluster->rect, drawing.nodes[i]))
        << model.nodes[i].key;
}

TEST(Layout, AFoldedModuleIsOneBox) {
  Model model = transformer(3);
  LayoutOptions options;
  options.folded = {"layers.1"};
  Drawing drawing = lay_out(model.nodes, model.edges, options);
  expect_no_overlaps(model, drawing);
  int hidden = 0;
  for (int cluster : drawing.hidden_in)
    if (cluster >= 0) {
      ++hidden;
      EXPECT_TRUE(drawing.clusters[static_cast<size_t>(cluster)].is_folded);
    }
  EXPECT_EQ(hidden, 8);
  // x and the mask go in, and the sum comes out: to the next norm and to the next sum.
  EXPECT_EQ(std::count_if(drawing.routes.begin(), drawing.routes.end(),
                          [](const Route& r) { return r.to_cluster >= 0; }),
            2);
  EXPECT_EQ(std::count_if(drawing.routes.begin(), drawing.routes.end(),
                          [](const Route& r) { return r.from_cluster >= 0; }),
            2);
}

TEST(Layout, AModuleThatRunsTwiceIsTwoBoxes) {
  std::vector<LayoutNode> nodes = {
      {"a", "shared", 40, 20}, {"b", "", 40, 20}, {"c", "shared", 40, 20}};
  Drawing drawing = lay_out(nodes, {{0, 1}, {1, 2}, {0, 2}});
  ASSERT_EQ(drawing.clusters.size(), 2u);
  EXPECT_EQ(drawing.clusters[0].key, "shared");
  EXPECT_EQ(drawing.clusters[1].key, "shared#2");
}

// Of neighbours in a rank, those that were there before stand as they stood, whatever the
// barycentres now say.
TEST(Layout, WhatWasDrawnKeepsItsOrder) {
  std::vector<LayoutNode> nodes;
  Edges edges;
  for (int i = 0; i < 6; ++i) nodes.push_back({"top" + std::to_string(i), "", 40, 20});
  for (int i = 0; i < 6; ++i) {
    nodes.push_back({"low" + std::to_string(i), "", 40, 20});
    edges.push_back({i, 6 + i});
  }
  Drawing before = lay_out(nodes, edges);
  // Now each reads from the other side, which would turn the lower rank around.
  std::vector<LayoutNode> more = nodes;
  Edges crossed;
  for (int i = 0; i < 6; ++i) crossed.push_back({i, 11 - i});
  more.push_back({"new", "", 40, 20});
  crossed.push_back({2, 12});
  LayoutOptions options;
  options.before = before.order;
  Drawing after = lay_out(more, crossed, options);
  for (int i = 0; i + 1 < 6; ++i) {
    const std::string left = "low" + std::to_string(i), right = "low" + std::to_string(i + 1);
    EXPECT_EQ(before.order[left] < before.order[right], after.order[left] < after.order[right]);
    const std::string a = "top" + std::to_string(i), b = "top" + std::to_string(i + 1);
    EXPECT_EQ(before.order[a] < before.order[b], after.order[a] < after.order[b]);
  }
  expect_no_overlaps({more, crossed}, after);
}

TEST(Layout, IsDeterministic) {
  Model model = random_model(60, 7);
  Drawing a = lay_out(model.nodes, model.edges), b = lay_out(model.nodes, model.edges);
  EXPECT_EQ(a.order, b.order);
}

TEST(Layout, NothingAndNonsenseDraw) {
  EXPECT_EQ(lay_out({}, {}).nodes.size(), 0u);
  std::vector<LayoutNode> nodes = {{"a", "..", 10, 10}, {"b", ".", 0, 0}};
  Drawing drawing = lay_out(nodes, {{1, 0}, {0, 0}, {-1, 1}, {0, 9}, {0, 1}});
  EXPECT_EQ(drawing.routes.size(), 1u);
}

}  // namespace
}  // namespace lathe
