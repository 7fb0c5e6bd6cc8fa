// Milliseconds of drawing a transformer of about 5,000 nodes, nested and flat, the best and the
// median of some runs. Not a test: run it by hand.
#include "web/layout/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace lathe {
namespace {

struct Model {
  std::vector<LayoutNode> nodes;
  std::vector<std::pair<int, int>> edges;
};

// 20 nodes a block: three projections with reshapes, attention, a multilayer perceptron, residuals,
// and a mask that every block reads.
Model transformer(int num_blocks, bool is_nested) {
  Model model;
  auto add = [&](const std::string& module, std::vector<int> from) {
    const int id = static_cast<int>(model.nodes.size());
    model.nodes.push_back({"n" + std::to_string(id), is_nested ? module : "", 120, 40});
    for (int f : from) model.edges.push_back({f, id});
    return id;
  };
  int x = add("", {});
  const int mask = add("", {});
  for (int b = 0; b < num_blocks; ++b) {
    const std::string block = "encoder.layer." + std::to_string(b);
    const std::string attention = block + ".attention";
    const int norm = add(block + ".norm", {x});
    int heads[3];
    for (int& head : heads) {
      const int projected = add(attention + ".self", {norm});
      head = add(attention, {add(attention, {projected})});
    }
    const int scores = add(attention, {heads[0], heads[1]});
    const int masked = add(attention, {scores, mask});
    const int mixed = add(attention, {add(attention, {masked}), heads[2]});
    x = add(block, {x, add(attention + ".out", {mixed})});
    const int hidden = add(block + ".mlp", {add(block + ".mlp", {x})});
    x = add(block, {x, add(block + ".mlp", {hidden})});
  }
  return model;
}

void time_drawing(const char* name, const Model& model) {
  std::vector<double> ms;
  Drawing drawing;
  for (int i = 0; i < 9; ++i) {
    const auto start = std::chrono::steady_clock::now();
    drawing = lay_out(model.nodes, model.edges);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                     .count());
  }
  std::sort(ms.begin(), ms.end());
  fmt::print("{:<8} {} nodes, {} edges: best {:.1f} ms, median {:.1f} ms\n", name,
             model.nodes.size(), model.edges.size(), ms[0], ms[ms.size() / 2]);
}

}  // namespace
}  // namespace lathe

int main() {
  lathe::time_drawing("nested", lathe::transformer(250, true));
  lathe::time_drawing("flat", lathe::transformer(250, false));
}
