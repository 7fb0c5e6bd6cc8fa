// Formulas beside their values.
#include "frontend/cli/formulas_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/cli/format.h"

namespace lathe {
namespace {

// Without `all`.
constexpr size_t kFormulaRoom = 40;
constexpr size_t kTotalRoom = 160;
constexpr size_t kFormulaRows = 16;
constexpr size_t kMostPeaks = 4;  // a Max of more says nothing to a reader

std::string value_of(const Formula& formula, bool is_bytes) {
  if (!formula.here) return "too large";
  return is_bytes ? format_bytes(*formula.here) : format_large(static_cast<double>(*formula.here));
}

}  // namespace

std::string formulas_table(const ProgramFormulas& formulas, const std::vector<std::string>& labels,
                           int64_t arena_bytes, bool all) {
  Table table({Align::left, Align::left, Align::right, Align::left, Align::right});
  table.add({"at every size", "FLOP", "here", "bytes moved", "here"});
  const size_t room = all ? kUncut : kFormulaRoom;
  for (size_t i = 0; i < labels.size() && (all || i < kFormulaRows); ++i) {
    const auto& [flops, bytes] = formulas.rows[i];
    table.add({labels[i], cut(flops.text, room), value_of(flops, false), cut(bytes.text, room),
               value_of(bytes, true)});
  }
  std::string text = table.str(2) + fmt::format("  in all; here at {}\n", formulas.sizes);
  const auto line = [&](std::string_view what, const std::string& formula,
                        const std::string& value) {
    text +=
        fmt::format("    {:<12} {} = {}\n", what, cut(formula, all ? kUncut : kTotalRoom), value);
  };
  line("FLOP", formulas.all.flops.text, value_of(formulas.all.flops, false));
  line("bytes moved", formulas.all.bytes.text, value_of(formulas.all.bytes, true));
  const bool is_short = all || formulas.num_peaks <= kMostPeaks;
  line("peak memory",
       is_short ? formulas.peak.text
                : fmt::format("the most of {} sums, evaluated at each size", formulas.num_peaks),
       fmt::format("{}, planned in {}", value_of(formulas.peak, true), format_bytes(arena_bytes)));
  return text;
}

}  // namespace lathe
