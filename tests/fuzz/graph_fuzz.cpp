// Any graph that parses goes through the passes to a program that the evaluator runs within its
// bounds, or to an error of the graph's.
#include "frontend/driver/model.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/graph_seeds.h"
#include "tests/fuzz/through_passes.h"

namespace lathe::fuzz {
namespace {

bool check(std::string_view text) {
  LocTable locs;
  const Result<Model> model = load_text(text, "fuzz.lathe", {.random_weights = 0}, locs);
  if (!model) return must_blame_the_input(model.error(), locs);
  return go_through_passes(*model, text);
}

}  // namespace

const Property kProperty = {check, 256, graphs_of_examples};

}  // namespace lathe::fuzz
