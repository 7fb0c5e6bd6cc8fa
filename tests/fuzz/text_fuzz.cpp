// Any text parses or is refused; what parses prints, and what prints parses to the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/op/all_ops.h"
#include "ir/program/text.h"

namespace {

int check_program(std::string_view text) {
  using namespace lathe;
  LocTable locs;
  const Result<Program> program = parse_program(text, locs, "fuzz");
  if (!program) {
    if (render(program.error(), locs).empty()) std::abort();
    return 0;
  }
  const std::string printed = print(*program);
  const Result<Program> again = parse_program(printed, locs, "printed");
  if (!again || print(*again) != printed) {
    std::fprintf(stderr, "does not read back:\n%s\n", printed.c_str());
    if (!again) std::fprintf(stderr, "%s\n", again.error().message.c_str());
    std::abort();
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (is_program_text(text)) return check_program(text);
  LocTable locs;
  const Result<Module> module = parse(text, builtin_registry(), "fuzz", &locs);
  if (!module) {
    if (render(module.error(), locs).empty()) std::abort();
    return 0;
  }
  const std::string printed = print(*module);
  const Result<Module> again = parse(printed, builtin_registry(), "printed");
  if (!again || structural_hash(*again) != structural_hash(*module)) {
    std::fprintf(stderr, "does not read back:\n%s\n", printed.c_str());
    if (!again) std::fprintf(stderr, "%s\n", again.error().message.c_str());
    std::abort();
  }
  return 0;
}
