// A decision that a person takes instead of the passes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/loc.h"
#include "ir/support/result.h"

namespace lathe {

// What a person wants decided so, whatever the passes would do: one item of the option `force`.
struct Override {
  enum class What : uint8_t { kernel, tile, keep };
  What what;
  std::string node;                // a region, or a member of one
  std::string kernel = {};         // the kind, of What::kernel
  std::vector<int64_t> tile = {};  // rows and vectors, of What::tile
  Loc loc = {};
  std::string text = {};        // as written
  bool is_carried_out = false;  // set by the pass that it is for
};

// One of
//   kernel NODE = KIND     a kind of kernel for the region that NODE is, or is a member of
//   tile NODE = ROWSxVECS  its register tile, such as 9x3
//   keep NODE              a kernel of its own: it joins no group, and none joins it
// NODE is a node's name, with or without the % of the text form. kBadValue names what is expected.
Result<Override> parse_override(std::string_view text, Loc loc);

// Those that ask for a kind of kernel and, unless it is empty, its tile.
std::vector<Override> overrides_for(const std::string& node, const std::string& kernel,
                                    const std::vector<int64_t>& tile);

// Why none was carried out, though the node is there: "the pipeline has no ...".
const char* why_unheeded(Override::What what);

}  // namespace lathe
