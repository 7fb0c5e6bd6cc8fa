// A bundle's rows as people read them: each break once, each cause with what followed from it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "frontend/bundle/bundle.h"

namespace lathe::bundle {

// A break, and the graphs that end at it: compilations of one frame meet it again. It points into
// the bundle.
struct BreakGroup {
  const Break* first = nullptr;
  std::vector<std::string> graphs = {};

  bool ends(const std::string& graph) const;
};
std::vector<BreakGroup> group_breaks(const Bundle& bundle);  // in the order of time

// A recompile that is its own cause. It points into the bundle.
struct CauseGroup {
  const Recompile* cause = nullptr;
  std::vector<std::string> follow = {};  // compilations that it brought about beside its own
};
std::vector<CauseGroup> group_recompiles(const Bundle& bundle);

struct SourceLine {
  int64_t number = 0;
  std::string code = {};
};
// The line of a break and `around` lines on either side, as far as the bundle has them.
std::vector<SourceLine> lines_around(const Bundle& bundle, const Break& row, int64_t around);

std::string id_of(int64_t frame, int64_t compile);  // "F_C"

}  // namespace lathe::bundle
