// Kernels that differ only in where they begin in a buffer, made one.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/loop/node.h"

namespace lathe::loop {

// For each global buffer, in order: how many elements from its begin on the kernel leaves alone, in
// whole steps of `alignment` bytes. The kernel's indices into the buffer, and the buffer's size,
// count from there afterwards: its launch hands it the buffer from that element on. A buffer whose
// indices have no known bounds keeps its begin, and one that keeps its begin its size. The kernel
// is scheduled.
std::vector<int64_t> rebase(Kernel& kernel, int64_t alignment);

}  // namespace lathe::loop
