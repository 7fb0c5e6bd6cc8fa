// Parts of group norms: see group_parts.h.
#include "passes/analysis/group_parts.h"

#include <algorithm>

namespace lathe {
namespace {

constexpr int64_t kMostElements = 1 << 15;  // that one group of threads sweeps over three times
constexpr int64_t kLeastPart = 2048, kMostPart = 1 << 14;
constexpr int64_t kBusy = 512;  // groups of threads that keep the machine busy
constexpr int64_t kEven = 8;    // elements that a thread moves at once

}  // namespace

int64_t part_of_group(int64_t length, int64_t num_groups) {
  if (length <= kMostElements) return length;
  const int64_t wanted = std::clamp(length * num_groups / kBusy, kLeastPart, kMostPart);
  int64_t even = 0, any = 0;
  for (int64_t part = wanted; part >= kLeastPart / 2 && even == 0; --part) {
    if (length % part != 0) continue;
    any = std::max(any, part);
    if (part % kEven == 0) even = part;
  }
  if (even != 0) return even;
  return any != 0 ? any : length;
}

bool has_short_parts(int64_t length, int64_t num_groups) {
  return part_of_group(length, num_groups) <= kMostElements;
}

}  // namespace lathe
