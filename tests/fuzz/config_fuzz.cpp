// Any bytes are a run config or are refused; a config prints as one that reads back.
#include "experiments/runner/config.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

bool check(std::string_view text) {
  LocTable locs;
  const Result<ExperimentConfig> config = read_config(text, "fuzz.json", locs);
  if (!config) return must_blame_the_input(config.error(), locs);
  const std::string printed = print_config(*config);
  const Result<ExperimentConfig> again = read_config(printed, "printed.json", locs);
  if (!again || print_config(*again) != printed) fail("does not read back", printed);
  return true;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
