// What a kernel can touch of its buffers.
#pragma once
#include <vector>

#include "ir/loop/node.h"

namespace lathe::loop {

// For each global buffer, in order: no more of its elements than this many are read or written,
// each counted once. An index touches no more places than its loops have iterations, so a gather
// counts the elements it loads; masks, branches and what several indices share are not looked at.
std::vector<int64_t> touched_elements(const Kernel& kernel);

}  // namespace lathe::loop
