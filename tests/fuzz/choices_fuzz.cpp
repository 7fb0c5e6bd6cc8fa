// Any bytes are kept choices or are refused; choices print as ones that read back.
#include "frontend/driver/choices_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

bool check(std::string_view text) {
  const Result<Choices> choices = parse_choices(text);
  if (!choices) return must_blame_the_input(choices.error(), LocTable());
  const std::string printed = print(*choices);
  const Result<Choices> again = parse_choices(printed);
  if (!again || print(*again) != printed) fail("does not read back", printed);
  return true;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
