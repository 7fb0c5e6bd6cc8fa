// Any bytes are a run config or are refused; a config prints as one that reads back.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "experiments/runner/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  LocTable locs;
  const Result<ExperimentConfig> config = read_config(text, "fuzz.json", locs);
  if (!config) {
    if (render(config.error(), locs).empty()) std::abort();
    return 0;
  }
  const std::string printed = print_config(*config);
  const Result<ExperimentConfig> again = read_config(printed, "printed.json", locs);
  if (!again || print_config(*again) != printed) {
    std::fprintf(stderr, "does not read back:\n%s\n", printed.c_str());
    std::abort();
  }
  return 0;
}
