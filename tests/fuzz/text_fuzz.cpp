// Any text parses or is refused; what parses prints, and what prints parses to the same. A program
// that parses runs in the interpreter, to results or to an error, within its limits.
#include <string>
#include <vector>

#include "frontend/driver/program_text.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/op/all_ops.h"
#include "ir/program/text.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

// Bits of each result, or what kind of thing went wrong: a message names what printing may rename.
std::vector<std::string> run(const Program& program, const LocTable& locs) {
  const ProgramTextOptions options{
      .weights = 0, .limits = {.max_bytes = uint64_t{4} << 20, .max_steps = 1 << 15}};
  const Result<ProgramResults> results = run_program_text(program, options);
  if (!results) {
    must_blame_the_input(results.error(), locs);
    return {results.error().code};
  }
  std::vector<std::string> bits;
  for (const Tensor& result : results->outputs) {
    const std::vector<std::byte> bytes = to_bytes(result);
    bits.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return bits;
}

bool check_program(std::string_view text) {
  LocTable locs;
  const Result<Program> program = parse_program(text, locs, "fuzz");
  if (!program) return must_blame_the_input(program.error(), locs);
  const std::string printed = print(*program);
  const Result<Program> again = parse_program(printed, locs, "printed");
  if (!again) fail(again.error().message, printed);
  if (print(*again) != printed) fail("prints otherwise once it is read back", printed);
  if (run(*program, locs) != run(*again, locs))
    fail("runs to something else once it is printed", printed);
  return true;
}

bool check(std::string_view text) {
  if (is_program_text(text)) return check_program(text);
  LocTable locs;
  const Result<Module> module = parse(text, builtin_registry(), "fuzz", &locs);
  if (!module) return must_blame_the_input(module.error(), locs);
  const std::string printed = print(*module);
  const Result<Module> again = parse(printed, builtin_registry(), "printed");
  if (!again) fail(again.error().message, printed);
  if (structural_hash(*again) != structural_hash(*module))
    fail("is another graph once it is printed", printed);
  return true;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
