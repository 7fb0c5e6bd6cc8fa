// A row for each range and guard.
#include "frontend/cli/guards_table.h"

#include <fmt/format.h>

#include "frontend/cli/format.h"
#include "frontend/driver/places.h"

namespace lathe {
namespace {

std::string cost_of_dropping(const GuardRow& row) {
  if (!row.stays.empty()) return "stays: " + row.stays;
  if (!row.worth) return "without it: " + row.unmeasured;
  return fmt::format("without it {} instead of {}: {:.2f}x, {:.2f} to {:.2f}",
                     format_ms(row.worth->without_ms), format_ms(row.worth->with_ms),
                     row.worth->ratio, row.worth->low, row.worth->high);
}

}  // namespace

std::vector<std::string> lines_of(const GuardReport& report) {
  std::vector<std::string> lines;
  for (const GuardRow& row : report.rows) lines.push_back(describe_place(report.locs, row.loc));
  return lines;
}

std::string guards_table(const GuardReport& report) {
  Table table({Align::left, Align::left, Align::left, Align::left});
  table.add({"the sizes satisfy", "found by", "line", "because"});
  const std::vector<std::string> lines = lines_of(report);
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const GuardRow& row = report.rows[i];
    table.add({row.text, row.found_by, lines[i], row.cause});
    const std::string in_logs = row.torch == row.text ? "" : row.torch + ": ";
    table.add_line(fmt::format("    {}{}", in_logs, row.source));
    table.add_line(
        fmt::format("    checked in {:.1f} ns; {}", row.check_ns, cost_of_dropping(row)));
  }
  for (const std::string& text : report.unread)
    table.add({text, "nobody", "", "is no comparison of sizes: not checked"});
  if (report.rows.empty() && report.unread.empty())
    return "  no size is a symbol: there is nothing to satisfy\n";
  std::string text = table.str(2);
  if (!report.rows.empty())
    text +=
        fmt::format("  all of it is checked in {:.1f} ns, when sizes are bound\n", report.check_ns);
  return text;
}

}  // namespace lathe
