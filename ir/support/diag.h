// Diagnostics: what the library returns when an input is wrong (Diag) or Lathe itself is
// (is_internal).
//
// Text style: lower-case, no final period, what was found and what was expected, names in quotes,
// the nearest valid choice where there is one. Codes are stable words; each has a test in
// tests/diagnostics.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/loc.h"

namespace lathe {

struct Note {
  Loc loc;
  std::string message;
};

struct Diag {
  std::string code;  // a word from ir/support/diag_codes.h
  Loc loc;           // where; unknown when only the message can say it
  std::string message;
  std::vector<Note> notes = {};
  std::vector<std::string> rows =
      {};                    // lines of a table below the message, such as unsupported ops
  bool is_internal = false;  // Lathe's fault, not the input's
};

// How much of the location chain to show.
struct RenderOptions {
  bool color = false;
  bool full_chain = false;  // every frame and every pass, not only the user's frame
};

// "model.py:12: error[shape-mismatch]: ..." with the source line, module, FX node and notes, as in
// house.md C8. Ends with a newline.
std::string render(const Diag& diag, const LocTable& locs, const RenderOptions& options = {});

// An internal error at a C++ source position; the caller adds what it knows.
Diag internal_error(std::string message, const char* file, int line);

// The candidate closest to `word` by edit distance, or "" when none is near enough to be a typo
// (distance at most 1 + length/3). Ties go to the first.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace lathe
