// Locations in a few words, for tables.
#pragma once
#include <string>
#include <vector>

#include "ir/support/loc.h"

namespace lathe {

// "mlp.py:18" of the user's innermost frame, "block.lathe:7", or "" when unknown.
std::string describe_place(const LocTable& locs, Loc loc);

// What the places of one kernel have in common: the names of their modules or FX nodes, each once
// and with numbers cut off ("fc1, gelu"), and the first place.
struct Source {
  std::string names;
  std::string place;
};
Source describe_source(const LocTable& locs, const std::vector<Loc>& origins);

}  // namespace lathe
