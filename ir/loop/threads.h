// Kernels whose iterations are groups of threads; node.h says what that means.
#pragma once
#include <cstdint>

#include "ir/loop/node.h"
#include "ir/support/result.h"

namespace lathe::loop {

inline constexpr int64_t kMostThreads = 1024;  // of a group

// The loop over the threads of a group, which stands last in the body of a kernel's parallel loop;
// null without one.
const For* thread_loop(const For& parallel);
const For* thread_loop(const Kernel& kernel);

// Whether some register array holds matrix tiles.
bool has_tiles(const Kernel& kernel);
// Whether it has atomic stores.
bool has_atomic(const Block& block);
// Whether a barrier stands in it.
bool has_barrier(const Block& block);
bool has_barrier(const Stmt& stmt);

// What verify() asks of threads: where their loop and barriers may stand, and whose memory is
// whose.
Status verify_threads(const Kernel& kernel);

}  // namespace lathe::loop
