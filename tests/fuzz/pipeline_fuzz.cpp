// Any text is a pipeline or is refused; a pipeline prints as text that reads back.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "passes/pipeline/pipeline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Pipeline> pipeline = parse_pipeline(text);
  if (!pipeline) return 0;
  const std::string printed = print(*pipeline);
  const Result<Pipeline> again = parse_pipeline(printed);
  if (!again || print(*again) != printed) {
    std::fprintf(stderr, "does not read back: %s\n", printed.c_str());
    std::abort();
  }
  return 0;
}
