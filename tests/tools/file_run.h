// Runs one case of a .lathe test file and compares.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/pass.h"
#include "tests/tools/file_case.h"

namespace lathe::file_test {

// What a case gave: the output's text, or the error that ended it.
struct Outcome {
  std::string output;       // the module, or the program once it is lowered
  Unit unit;                // what `output` printed
  LocTable locs;            // of `error` and `refusals`
  std::vector<Diag> error;  // none or one
  std::vector<Refusal> refusals;
};

Outcome run_case(const FileCase& test, const Registry& ops, std::string_view file);

// Each mismatch as a message that begins with "file:line: ". Empty: the case holds.
std::vector<std::string> compare(const FileCase& test, const Outcome& outcome, const Registry& ops,
                                 std::string_view file);

// The file with its `=>` modules and error texts as the run gave them (checks stay as they are).
std::string bless(std::string_view text, const std::vector<FileCase>& cases,
                  const std::vector<Outcome>& outcomes);

}  // namespace lathe::file_test
