// Formulas as text beside their values.
#include "frontend/driver/formulas.h"

#include <fmt/format.h>

#include "ir/program/formulas.h"

namespace lathe {

ProgramFormulas formulas_of(const Program& symbolic, const std::vector<std::vector<size_t>>& groups,
                            std::map<std::string, int64_t> sizes) {
  for (const auto& [symbol, hint] : symbolic.hints) sizes.try_emplace(symbol, hint);
  const auto formula = [&](const Dim& dim) {
    const Result<int64_t> here = dim.evaluate(sizes);
    return Formula{dim.str(), here.ok() ? std::optional(*here) : std::nullopt};
  };
  ProgramFormulas formulas;
  for (const std::vector<size_t>& steps : groups) {
    Dim flops = 0, bytes = 0;
    for (size_t i : steps) {
      flops = flops + symbolic.steps[i].flops;
      bytes = bytes + symbolic.steps[i].bytes;
    }
    formulas.rows.push_back({formula(flops), formula(bytes)});
  }
  const CostFormulas costs = cost_formulas(symbolic);
  formulas.all = {formula(costs.flops), formula(costs.bytes)};
  Dim most = 0;
  for (const Dim& alive : costs.alive) most = Dim::max(most, alive);
  formulas.peak = formula(costs.alive.size() == 1 ? costs.alive[0] : most);
  formulas.num_peaks = costs.alive.size();
  for (const auto& [symbol, range] : symbolic.symbols)
    formulas.sizes +=
        fmt::format("{}{} = {}", formulas.sizes.empty() ? "" : ", ", symbol, sizes.at(symbol));
  return formulas;
}

}  // namespace lathe
