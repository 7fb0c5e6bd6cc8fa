// The steps of a long short-term memory: see lstm_steps.h.
#include "ir/op/lstm_steps.h"

#include <cmath>

namespace lathe {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

void LstmSteps::run(std::vector<double>& h, std::vector<double>& c) const {
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = is_reversed ? steps - 1 - i : i;
    const std::vector<double> before = h;
    for (int64_t b = 0; b < batch; ++b) {
      const auto gate = [&](int64_t number) {
        double sum = gate_of_x(t, b, number);
        for (int64_t k = 0; k < hidden; ++k)
          sum += weight(k, number) * before[static_cast<size_t>(b * hidden + k)];
        return sum;
      };
      for (int64_t j = 0; j < hidden; ++j) {
        const auto at = static_cast<size_t>(b * hidden + j);
        const double kept = sigmoid(gate(hidden + j)) * c[at];
        c[at] = kept + sigmoid(gate(j)) * std::tanh(gate(2 * hidden + j));
        h[at] = sigmoid(gate(3 * hidden + j)) * std::tanh(c[at]);
        output(t, b, j, h[at]);
      }
    }
  }
}

}  // namespace lathe
