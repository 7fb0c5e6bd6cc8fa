// Any text parses or is refused; what parses prints, and what prints parses to the same.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/op/all_ops.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
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
