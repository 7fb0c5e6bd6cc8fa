// Parts of the groups of a group norm, where threads share vectors.
#pragma once
#include <cstdint>

namespace lathe {

// How many elements of a group of `length` one group of threads takes, of `num_groups` norms: a
// divisor of the length, all of it where that is short.
int64_t part_of_group(int64_t length, int64_t num_groups);

// Whether groups of threads take such a norm: a part is not longer than one sweeps over in less
// time than further launches take.
bool has_short_parts(int64_t length, int64_t num_groups);

}  // namespace lathe
