// Any model JSON that imports goes through the passes to a program that the evaluator runs within
// its bounds, or to an error of the model's.
#include "frontend/driver/model.h"
#include "frontend/pt2/archive.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/through_passes.h"

namespace lathe::fuzz {
namespace {

bool check(std::string_view input) {
  LocTable locs;
  const auto file = pt2::open_model(own_bytes(std::string(input)), "fuzz.json");
  if (!file) return must_blame_the_input(file.error(), locs);
  const Result<Model> model = load_model(*file, {.random_weights = 0}, locs);
  if (!model) return must_blame_the_input(model.error(), locs);
  return go_through_passes(*model, input);
}

}  // namespace

const Property kProperty = {check, 256};

}  // namespace lathe::fuzz
