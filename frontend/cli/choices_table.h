// What each launch is, was predicted to take and takes, and which kinds of kernels lost.
#pragma once
#include <string>
#include <vector>

#include "frontend/driver/launches.h"

namespace lathe {

// Most time first; launches that are alike are one row. Without `all` the first rows only.
std::string choices_table(const std::vector<LaunchRow>& rows, bool all);

}  // namespace lathe
