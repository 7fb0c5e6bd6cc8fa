// A loop over threads, for references of contractions. Serial where there are no threads
// (WebAssembly).
#pragma once
#include <cstdint>
#include <functional>

namespace lathe {

// Calls body(begin, end) on parts of [0, count) at once, on as many threads as the machine runs;
// every index in exactly one part. Returns when all are done. `body` must not share writable state.
void parallel_for(int64_t count, const std::function<void(int64_t, int64_t)>& body);

}  // namespace lathe
