// Where everything of a program lies in one linear memory. Decided before code is emitted, so that
// launches name constant addresses; the host reads it to know where to put and find bytes.
//
//   kLeastAddress | constants, persistent buffers, weights that steps read | the rest
//
// The rest is used twice: by init for its temporaries and the weights of one launch at a time,
// then by calls for scratch, inputs, outputs and the arena. A page has no room for all weights
// beside their packed form.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::wasm {

struct Placement {
  BufferId buffer;
  int64_t address;
};

struct Layout {
  std::vector<int64_t> address;  // by buffer; -1 for weights that only init reads
  // What to put into memory before each init launch.
  std::vector<std::vector<Placement>> staged;
  std::vector<Placement> weights;  // before the first of them, for good
  int64_t scratch = 0;
  int64_t num_bytes = 0;  // of the memory, from address 0; whole pages
  int64_t persistent_bytes = 0;
  int64_t arena_bytes = 0;  // of temporaries of calls
};

// `scratch_bytes`: the most that any kernel needs. More than 4 GiB are an error, which says what
// needs them.
Result<Layout> plan_layout(const Program& program, int64_t scratch_bytes);

}  // namespace lathe::wasm
