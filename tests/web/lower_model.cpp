// What the driver, not the engine, makes of a model: prints each graph step's structural hash and
// the final text, for engine_test.mjs to compare with.
//   lower_model MODEL PIPELINE TARGET
#include <cstdio>
#include <string>

#include "frontend/driver/build.h"
#include "ir/graph/text.h"

int main(int argc, char** argv) {
  using namespace lathe;
  if (argc != 4) return 2;
  LocTable locs;
  ModelOptions options;
  options.allow_no_weights = true;
  Result<Model> model = load_model(argv[1], options, locs);
  if (!model.ok()) {
    std::fputs(render(model.error(), locs).c_str(), stdout);
    return 1;
  }
  BuildFailure failure;
  const CompileRequest request{.threads = 1, .passes = argv[2]};
  Result<Lowered> lowered = lower(*model, *find_target(argv[3]), request, failure);
  if (!lowered.ok()) {
    std::fputs(render(lowered.error(), failure.locs).c_str(), stdout);
    return 1;
  }
  const bool has_program = lowered->report.form >= Form::loops;
  std::fputs(
      has_program ? print(lowered->unit.program).c_str() : print(lowered->unit.module).c_str(),
      stdout);
  return 0;
}
