// Cells and their steps: see recurrent.h.
#include "ir/op/recurrent.h"

#include <algorithm>

namespace lathe {
namespace {

constexpr CellDef kCells[] = {{"lstm", Cell::lstm, 4, 2},
                              {"gru", Cell::gru, 3, 1},
                              {"rnn_tanh", Cell::rnn_tanh, 1, 1},
                              {"rnn_relu", Cell::rnn_relu, 1, 1}};

// A number that the formulas take.
struct Real {
  double value;
  friend Real operator+(Real a, Real b) { return {a.value + b.value}; }
  friend Real operator-(Real a, Real b) { return {a.value - b.value}; }
  friend Real operator*(Real a, Real b) { return {a.value * b.value}; }
  friend Real sigmoid(Real x) { return {1 / (1 + std::exp(-x.value))}; }
  friend Real tanh(Real x) { return {std::tanh(x.value)}; }
  friend Real max(Real x, double b) {
    return {std::isnan(x.value) ? x.value : std::fmax(x.value, b)};
  }
};

}  // namespace

std::span<const CellDef> all_cells() { return kCells; }

const CellDef* find_cell(std::string_view name) {
  const auto* found = std::find_if(std::begin(kCells), std::end(kCells),
                                   [&](const CellDef& def) { return def.name == name; });
  return found == std::end(kCells) ? nullptr : found;
}

void LayerSteps::run(std::vector<std::vector<double>>& states) const {
  std::vector<Real> x(static_cast<size_t>(gates)), h = x, own(states.size());
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = is_reversed ? steps - 1 - i : i;
    const std::vector<double> before = states[0];
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t j = 0; j < hidden; ++j) {
        for (int64_t gate = 0; gate < gates; ++gate) {
          const int64_t column = gate * hidden + j;
          double sum = bias ? bias(column) : 0;
          for (int64_t k = 0; k < hidden; ++k)
            sum += weight(k, column) * before[static_cast<size_t>(b * hidden + k)];
          x[static_cast<size_t>(gate)] = {gate_of_x(t, b, column)};
          h[static_cast<size_t>(gate)] = {sum};
        }
        const auto at = static_cast<size_t>(b * hidden + j);
        for (size_t s = 0; s < states.size(); ++s) own[s] = {s == 0 ? before[at] : states[s][at]};
        const std::vector<Real> after = step_cell<Real>(cell, x, h, own);
        for (size_t s = 0; s < states.size(); ++s) states[s][at] = after[s].value;
        output(t, b, j, after[0].value);
      }
    }
  }
}

}  // namespace lathe
