// What a program costs, as expressions of its symbols.
#pragma once
#include <vector>

#include "ir/program/program.h"

namespace lathe {

struct CostFormulas {
  Dim flops = 0, bytes = 0;  // of all steps, as Launch counts them
  // Bytes of the temporaries that are alive at one launch, of those launches at which they may be
  // most: the peak is the largest of them. A plan adds what aligns buffers, and gaps.
  std::vector<Dim> alive;
};

CostFormulas cost_formulas(const Program& program);

}  // namespace lathe
