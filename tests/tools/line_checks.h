// Comparing text line by line: `check` directives, and a diff for a person.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tests/tools/file_case.h"

namespace lathe::file_test {

// Appends a message for the first directive that does not hold. White space counts as one blank.
void check_lines(const std::vector<Check>& checks, std::string_view output, std::string_view file,
                 std::vector<std::string>& failures);

// The longest common lines with "  " before them, the others with "- " (only in a) and "+ ".
std::string line_diff(std::string_view a, std::string_view b);

}  // namespace lathe::file_test
