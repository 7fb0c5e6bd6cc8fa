// Assertions on numbers that a run computes: the host reads one and ends the run.
#pragma once
#include <cstdint>
#include <string_view>

#include "ir/support/result.h"

namespace lathe {

// A number as assertions read it, its key: less `low`, no further from 0 than a quarter of all
// numbers, and without its sign bit. What lies below `low` is then above all that does not, so that
// the largest of many is outside if any one is.
inline constexpr int64_t kLeastNumber = -(int64_t{1} << 62);
inline constexpr int64_t kMostNumber = (int64_t{1} << 62) - 1;
inline constexpr int64_t kNumberMask = INT64_MAX;
int64_t number_of(int64_t key, int64_t low);

// kAssertion unless the number is in [low, high). `message` says "{index}" and "{size}" where the
// number and `high` stand.
Status check_bounds(int64_t key, int64_t low, int64_t high, std::string_view message,
                    const Loc& loc);

}  // namespace lathe
