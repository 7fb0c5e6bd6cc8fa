// Comparing line by line: texts are long.
#include "tests/program/round_trip.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/program/text.h"

namespace lathe {

Result<Program> round_trip(const Program& program) {
  const std::string text = print(program);
  LocTable locs;
  Result<Program> again = parse_program(text, locs, "printed");
  if (!again.ok()) {
    ADD_FAILURE() << render(again.error(), locs);
    return again;
  }
  const std::string printed = print(*again);
  const auto [a, b] = std::mismatch(text.begin(), text.end(), printed.begin(), printed.end());
  if (a != text.end() || b != printed.end()) {
    const auto line = [](const std::string& from, size_t at) {
      const size_t begin = from.rfind('\n', at) + 1;
      return from.substr(begin, from.find('\n', at) - begin);
    };
    const auto at = static_cast<size_t>(a - text.begin());
    ADD_FAILURE() << "printed\n" << line(text, at) << "\nprints again\n" << line(printed, at);
  }
  return again;
}

}  // namespace lathe
