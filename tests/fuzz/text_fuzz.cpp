// Any text parses or is refused; what parses prints, and what prints parses to the same. A program
// that parses runs in the interpreter, to results or to an error, within its limits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/driver/program_text.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/op/all_ops.h"
#include "ir/program/text.h"

namespace {

using namespace lathe;

// Bits of each result, or what went wrong.
std::vector<std::string> run(const Program& program, const LocTable& locs) {
  const ProgramTextOptions options{
      .weights = 0, .limits = {.max_bytes = uint64_t{64} << 20, .max_steps = 1 << 15}};
  const Result<std::vector<Tensor>> results = run_program_text(program, options);
  if (!results) {
    if (results.error().is_internal || render(results.error(), locs).empty()) {
      std::fprintf(stderr, "not an error of the text's: %s\n", results.error().message.c_str());
      std::abort();
    }
    return {results.error().message};
  }
  std::vector<std::string> bits;
  for (const Tensor& result : *results) {
    const std::vector<std::byte> bytes = to_bytes(result);
    bits.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return bits;
}

int check_program(std::string_view text) {
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
  if (run(*program, locs) != run(*again, locs)) {
    std::fprintf(stderr, "runs to something else once it is printed:\n%s\n", printed.c_str());
    std::abort();
  }
  return 0;
}

int check(std::string_view text) {
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

}  // namespace

// The cases of a test file are texts of their own.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kBetween = "// -----";
  std::string_view text(reinterpret_cast<const char*>(data), size);
  for (size_t end = 0; end != text.npos;) {
    end = text.find(kBetween);
    check(text.substr(0, end));
    if (end != text.npos) text.remove_prefix(end + kBetween.size());
  }
  return 0;
}
