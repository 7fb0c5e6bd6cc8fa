// Any graph that parses becomes machine code that finds the bits which the evaluator finds, or an
// error of the graph's.
#include <memory>

#include "backends/cpu/backend.h"
#include "frontend/driver/model.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/graph_seeds.h"
#include "tests/fuzz/through_passes.h"

namespace lathe::fuzz {
namespace {

bool check(std::string_view text) {
  static const Result<std::unique_ptr<Backend>> backend = make_cpu_backend("avx2");
  if (!backend) fail("no backend", backend.error().message);
  LocTable locs;
  const Result<Model> model = load_text(text, "fuzz.lathe", {.random_weights = 0}, locs);
  if (!model) return must_blame_the_input(model.error(), locs);
  return go_through_passes(*model, text, backend->get());
}

}  // namespace

const Property kProperty = {check, 256, graphs_of_examples};

}  // namespace lathe::fuzz
