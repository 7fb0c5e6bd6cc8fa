// Reading, judging and writing ulp.txt.
#include "tests/math/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "ir/support/diag_codes.h"
#include "tests/math/functions.h"

namespace lathe {
namespace {

// Of a bound: what an error may lie below it.
double slack(double bound) { return 0.0101 + 0.001 * bound; }

size_t index_of(const UlpTable& table, const std::string& column) {
  auto found = std::find(table.columns.begin(), table.columns.end(), column);
  return static_cast<size_t>(found - table.columns.begin());
}

std::string cell(double bound) {
  if (bound < 0) return "-";
  if (bound >= kWrong) return "wrong";
  return bound >= 1e4 ? fmt::format("{:.3g}", bound) : fmt::format("{:.2f}", bound);
}

double value_of(const std::string& cell) {
  if (cell == "-") return -1;
  return cell == "wrong" ? kWrong : std::strtod(cell.c_str(), nullptr);
}

}  // namespace

double as_bound(double ulps) {
  return ulps >= 1e4 ? ulps : std::fmax(0, std::ceil(ulps * 100 - 1e-6)) / 100;
}

std::vector<uint32_t> UlpTable::operands() const {
  std::vector<uint32_t> all;
  for (const auto& [name, row] : rows) all.insert(all.end(), row.at.begin(), row.at.end());
  return all;
}

Result<UlpTable> parse_ulp_table(const std::string& text) {
  UlpTable table;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    if (name.empty()) continue;
    if (name[0] == '#') {
      table.heading += line + "\n";
    } else if (table.columns.empty()) {
      while (words >> word && word != "|") table.columns.push_back(word);
    } else {
      UlpTable::Row& row = table.rows[name];
      while (words >> word && word != "|") row.bounds.push_back(value_of(word));
      while (words >> word)
        row.at.push_back(static_cast<uint32_t>(std::strtoul(word.c_str(), nullptr, 16)));
      if (row.bounds.size() != table.columns.size())
        return Diag{.code = code::kSyntax,
                    .message = fmt::format("the row of '{}' has {} bounds for {} targets", name,
                                           row.bounds.size(), table.columns.size())};
    }
  }
  return table;
}

std::string print(const UlpTable& table) {
  std::string text = table.heading + fmt::format("{:<12}", "function");
  for (const std::string& column : table.columns) text += fmt::format(" {:>8}", column);
  text += " | worst at\n";
  for (const MathFunction& function : math_functions()) {
    auto found = table.rows.find(function.name);
    if (found == table.rows.end()) continue;
    text += fmt::format("{:<12}", function.name);
    for (double bound : found->second.bounds) text += fmt::format(" {:>8}", cell(bound));
    text += " |";
    for (uint32_t at : found->second.at) text += fmt::format(" {:08x}", at);
    text += "\n";
  }
  return text;
}

std::string disagreements(const UlpTable& table, const std::string& column,
                          const std::vector<WorstError>& errors) {
  const size_t index = index_of(table, column);
  if (index == table.columns.size()) return "no column " + column;
  std::string wrong;
  for (size_t f = 0; f < errors.size(); ++f) {
    const std::string& name = math_functions()[f].name;
    auto row = table.rows.find(name);
    const double bound = row == table.rows.end() ? -1 : row->second.bounds[index];
    const double error = errors[f].ulps;
    if (bound < 0)
      wrong += fmt::format("{} has no bound on {}; measured {}\n", name, column, cell(error));
    else if (as_bound(error) > bound + 0.002 + 0.001 * bound)
      wrong += fmt::format("{} on {}: {} ULP at {:08x}, beyond its bound of {}\n", name, column,
                           cell(as_bound(error)), errors[f].at, cell(bound));
    else if (error < bound - slack(bound))
      wrong += fmt::format("{} on {}: {} ULP at most, and a bound of {}, which is too loose\n",
                           name, column, cell(as_bound(error)), cell(bound));
  }
  return wrong;
}

void replace_column(UlpTable& table, const std::string& column,
                    const std::vector<WorstError>& errors) {
  const size_t index = index_of(table, column);
  for (size_t f = 0; f < errors.size(); ++f) {
    UlpTable::Row& row = table.rows[math_functions()[f].name];
    row.bounds.resize(table.columns.size(), -1);
    row.bounds[index] = as_bound(errors[f].ulps);
    const uint32_t at = errors[f].at;
    const bool is_known = std::find(row.at.begin(), row.at.end(), at) != row.at.end();
    if (errors[f].ulps > 0 && !is_known) row.at.push_back(at);
  }
}

}  // namespace lathe
