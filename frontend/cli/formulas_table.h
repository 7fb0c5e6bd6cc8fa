// What a program with symbolic sizes costs at every size.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "frontend/driver/formulas.h"

namespace lathe {

// Operations and bytes moved of each row, by its label, and of all; the most bytes of temporaries
// that are alive, beside the `arena_bytes` that are planned here. Without `all` the first rows, and
// no formula that is longer than a line or two.
std::string formulas_table(const ProgramFormulas& formulas, const std::vector<std::string>& labels,
                           int64_t arena_bytes, bool all);

}  // namespace lathe
