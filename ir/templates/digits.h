// Loops over merged dims, taken apart again where what they read is apart.
#pragma once
#include <cstdint>

#include "ir/templates/collapse.h"

namespace lathe {

// A loop over i whose values use i // n and i % n, as reading through a reshape does, becomes one
// over the quotient and one over the remainder, each a plain variable. `least` is the shortest
// innermost loop that may arise.
void split_digits(loop::Kernel& kernel, LoopVars& loops, std::vector<loop::Expr>& values,
                  std::vector<loop::Expr>& indices, int64_t least);

}  // namespace lathe
