// Every example of every op as text, and what the native compiler makes of it, as JSON:
// [{"name", "text", "results": {PIPELINE: text}}], for engine_test.mjs to compare with.
//   lower_examples TARGET
#include <cstdio>
#include <nlohmann/json.hpp>

#include "frontend/driver/build.h"
#include "ir/graph/text.h"
#include "tests/ops/example_case.h"

namespace lathe {
namespace {

std::string lower_text(const std::string& text, const std::string& name, const char* passes,
                       const Target& target) {
  LocTable locs;
  Result<Model> model = load_text(text, name, {}, locs);
  if (!model.ok()) return render(model.error(), locs);
  BuildFailure failure;
  Result<Lowered> lowered = lower(*model, target, {.threads = 1, .passes = passes}, failure);
  if (!lowered.ok()) return render(lowered.error(), failure.locs);
  return lowered->report.form >= Form::loops ? print(lowered->unit.program)
                                             : print(lowered->unit.module);
}

}  // namespace
}  // namespace lathe

int main(int argc, char** argv) {
  using namespace lathe;
  if (argc != 2) return 2;
  const Target& target = *find_target(argv[1]);
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const ExampleCase& example : all_examples()) {
    Result<BuiltExample> built = build_example(example);
    if (!built.ok()) continue;
    const std::string name = example.name() + ".lathe", text = print(built->module);
    nlohmann::ordered_json one{{"name", name}, {"text", text}};
    for (const char* passes : {"functionalize,decompose", "default"})
      one["results"][passes] = lower_text(text, name, passes, target);
    cases.push_back(std::move(one));
  }
  std::puts(cases.dump().c_str());
  return 0;
}
