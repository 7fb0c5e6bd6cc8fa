// What the sizes of a model must satisfy, who needs it, and what that costs.
#pragma once
#include <string>
#include <vector>

#include "frontend/driver/guard_report.h"

namespace lathe {

// The line of the user's that each row comes from; "" where there is none.
std::vector<std::string> lines_of(const GuardReport& report);

// A row for each range and guard with, below it, PyTorch's words, the time of its check and what
// dropping it costs; then all checks together, and what of the exporter's guards nobody checks.
std::string guards_table(const GuardReport& report);

}  // namespace lathe
