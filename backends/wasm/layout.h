// Where everything of a program lies in one linear memory. Decided before code is emitted, so that
// launches name constant addresses; the host reads it to know where to put and find bytes.
//
//   kLeastAddress | constants, persistent buffers, weights that steps read | table | the rest
//
// The rest is used twice: by init for its temporaries and the weights of one launch at a time,
// then by calls for scratch, inputs, outputs and the arena. A page has no room for all weights
// beside their packed form.
//
// Where the program has symbols, what calls use lies elsewhere for each of its sizes. Its launches
// read addresses and sizes from the table, words of 32 bits that the host writes when it binds
// sizes: an address for each buffer, that of the scratch memory, and the sizes of each step.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/program/binding.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::wasm {

struct Placement {
  BufferId buffer;
  int64_t address;
};

struct Layout {
  // By buffer; -1 for weights that only init reads, and for what has an address in the table.
  std::vector<int64_t> address;
  // What to put into memory before each init launch.
  std::vector<std::vector<Placement>> staged;
  std::vector<Placement> weights;  // before the first of them, for good
  int64_t scratch = 0;
  int64_t table = -1;               // the address of the table; -1: no symbols
  std::vector<int64_t> first_size;  // by step: the word of the table where its sizes begin
  int64_t rest = 0;                 // where the rest begins
  int64_t num_bytes = 0;            // of the memory, from address 0; whole pages
  int64_t persistent_bytes = 0;
  int64_t arena_bytes = 0;  // of temporaries of calls
};

// `scratch_bytes`: the most that any kernel needs. More than 4 GiB are an error, which says what
// needs them.
Result<Layout> plan_layout(const Program& program, int64_t scratch_bytes);

// The layout at sizes of the program's symbols.
struct BoundLayout {
  std::vector<int64_t> address;  // by buffer, as in Layout
  std::vector<int32_t> table;
  int64_t scratch = 0;
  int64_t num_bytes = 0;  // of the memory
};
// kTooLarge: more than 4 GiB, or a size of more than 32 bits.
Result<BoundLayout> bind_layout(const Program& program, const Layout& layout,
                                const Binding& binding, int64_t scratch_bytes);

}  // namespace lathe::wasm
