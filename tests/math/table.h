// The table of worst errors, ulp.txt: what it says, and whether it is true.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "tests/math/sweep.h"

namespace lathe {

struct UlpTable {
  std::string heading;               // the comments at its top
  std::vector<std::string> columns;  // targets
  struct Row {
    std::vector<double> bounds;  // by column; -1: not known
    std::vector<uint32_t> at;    // operands where the worst was met
  };
  std::map<std::string, Row> rows;  // by function

  std::vector<uint32_t> operands() const;  // of all rows
};
Result<UlpTable> parse_ulp_table(const std::string& text);
// Rows in the order of math_functions().
std::string print(const UlpTable& table);

// A bound as the table writes it: the error, rounded up to what two decimals show.
double as_bound(double ulps);

// What is wrong with a column, a line each: an error beyond its bound, or a bound that is looser
// than the errors, which the operands of the table are there to bring back.
std::string disagreements(const UlpTable& table, const std::string& column,
                          const std::vector<WorstError>& errors);
// Puts the errors in.
void replace_column(UlpTable& table, const std::string& column,
                    const std::vector<WorstError>& errors);

}  // namespace lathe
