// Any text is a pipeline or is refused; a pipeline prints as text that reads back.
#include "passes/pipeline/pipeline.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

bool check(std::string_view text) {
  const Result<Pipeline> pipeline = parse_pipeline(text);
  if (!pipeline) return must_blame_the_input(pipeline.error(), LocTable());
  const std::string printed = print(*pipeline);
  const Result<Pipeline> again = parse_pipeline(printed);
  if (!again || print(*again) != printed) fail("does not read back", printed);
  return true;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
