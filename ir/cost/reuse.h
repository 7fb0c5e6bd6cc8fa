// Bytes that a kernel moves between the levels of memory.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ir/loop/node.h"

namespace lathe {

struct Traffic {
  // For each capacity in bytes, the bytes that do not come from a cache of that size. A loop of
  // which one iteration fits brings each place once: what moves streams through, what does not
  // stays. Of any other loop every iteration brings all of its own.
  std::vector<double> beyond;
  std::vector<double> once;  // by global buffer: bytes of the places that are touched
};
Traffic count_traffic(const loop::Kernel& kernel, std::span<const int64_t> capacities,
                      int64_t line_bytes);

}  // namespace lathe
