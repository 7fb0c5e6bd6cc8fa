// A .lathe test file, read: what to do, the input, and what its comments expect. The input is a
// module, or a program, which pipelines go on with from the form that lower_to_loops leaves.
//
//   // test: decompose, cse          a pipeline; or `parse`, or `print`; or `run`, whose output is
//                                    a line for each result of the program, interpreted on seed 0
//   // target: avx2                  the machine that passes lower for (avx512 unless told)
//   // numerics: strict              or ieee; default unless told
//   // force: keep x                 a decision for the passes (passes/choices); any number
//   // check: text                   the output has a line with `text`, after the last match
//   // check-next: text              ... and it is the very next line
//   // check-same: text              ... and it is the same line, further right
//   // check-not: text               no line with `text` up to the next match
//   %0 = add(%x, %y)  // error[shape-mismatch]: text    the run ends with this error, here
//   %1 = neg(%0)      // note@-2: text                  ... with this note, two lines further up
//   %2 = exp(%1)      // refuses: text                  a pass leaves this alone and says why
//   =>                               the output is, structurally, the module that follows
//
// A line of dashes after `//` ends a case; the next one begins with its own `test` line or does the
// same as the one before.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"
#include "ir/target/numerics.h"
#include "passes/choices/override.h"

namespace lathe::file_test {

struct Check {
  enum class Kind : uint8_t { anywhere, next, same, never };
  Kind kind;
  std::string text;
  int line;  // of the directive, 1-based
};

struct ExpectedDiag {
  std::string severity;  // "error", "note" or "refuses"
  std::string code;      // of errors
  std::string text;      // part of the message
  int line;              // it is reported for, 1-based
  int written_line;      // of the directive
};

// Lines are numbered from 1; ranges are [begin, end).
struct FileCase {
  std::string action;             // "parse", "print", "run" or a pipeline
  std::string target = "avx512";  // for find_target
  Numerics numerics = Numerics::standard;
  std::vector<Override> force;
  std::string input;  // the whole file with every other line blank: positions hold
  std::vector<Check> checks;
  std::vector<ExpectedDiag> diags;
  bool has_expected = false;
  std::string expected;  // what follows `=>`, padded likewise
  int line = 1;          // where the case begins
  int expected_begin = 0;
  int expected_end = 0;
};

// The cases of a file. Errors: a directive that does not parse, a file without a `test` line.
Result<std::vector<FileCase>> read_cases(std::string_view text, std::string_view file);

std::vector<std::string> split_lines(std::string_view text);

}  // namespace lathe::file_test
