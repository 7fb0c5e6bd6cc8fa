// How wide the groups of a convolution should be for a library, by what they take then.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/graph/node.h"
#include "ir/target/target.h"

namespace lathe {

// Channels that lie in `parts` runs of `own`, each filled up to `filled`.
struct Runs {
  int64_t parts = 1, own = 1, filled = 1;
  bool operator==(const Runs&) const = default;
  bool are_filled() const { return filled != own; }
};

// So many neighbours are one group; what it has of channels and filters is filled up with zeros.
struct GroupWidths {
  int64_t merged = 1;
  Runs channels, filters;  // as many parts as there are groups then
};

// None where it should stay as it is. `is_made`, `is_cut`: channels of zeros in what it reads, and
// in its result, take no copy.
std::optional<GroupWidths> better_group_widths(const Node& convolution,
                                               const std::map<std::string, int64_t>& hints,
                                               const Target& target, bool is_made, bool is_cut);

}  // namespace lathe
