// What a program that was compiled with symbols costs: formulas, and their values at some sizes.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace lathe {

struct Formula {
  std::string text;             // "2*s0*s1 + 64"
  std::optional<int64_t> here;  // nothing when it overflows
};

struct ProgramFormulas {
  struct Row {
    Formula flops, bytes;
  };
  std::vector<Row> rows;  // of each group of steps
  Row all;
  // The most bytes of temporaries that are alive; "Max(...)" of `num_peaks` sums where no one of
  // them is the largest at every size. A plan adds what aligns buffers, and gaps.
  Formula peak;
  size_t num_peaks = 0;
  std::string sizes;  // "s0 = 4, s1 = 128"
};

// `groups` has the places of steps; `sizes` a value of each symbol that a caller binds. Others have
// their hints.
ProgramFormulas formulas_of(const Program& symbolic, const std::vector<std::vector<size_t>>& groups,
                            std::map<std::string, int64_t> sizes);

}  // namespace lathe
