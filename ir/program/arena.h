// Places of temporaries in one arena.
//
// A temporary is alive from the first launch that touches it to the last; two that are never alive
// together may share bytes. Placed in order of falling size, each in the smallest gap that fits.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace lathe {

struct Lifetime {
  BufferId id;
  int first, last;    // launches
  int64_t bytes = 0;  // a multiple of kBufferAlignment, as is the offset
  int64_t offset = 0;
};

int64_t aligned(int64_t bytes);  // up to the next multiple of kBufferAlignment

// Of the temporaries that launches use, without bytes.
std::vector<Lifetime> lifetimes(const Program& program, const std::vector<Launch>& launches);

// Offsets for all, by their bytes, and the arena's size. `shares`: bytes of those that are never
// alive together.
int64_t place(std::vector<Lifetime>& lives, bool shares = true);

// No plan needs less: the most bytes alive at one launch.
int64_t most_alive(const std::vector<Lifetime>& lives, size_t num_launches);

}  // namespace lathe
