// Cells of recurrent layers, in PyTorch's formulas, and what the references of layers compute.
#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/op/formula.h"

namespace lathe {

enum class Cell : uint8_t { lstm, gru, rnn_tanh, rnn_relu };

struct CellDef {
  std::string_view name;
  Cell cell;
  int64_t gates;   // sums for each element of h
  int64_t states;  // h, and c of an lstm
};

// Null for a name that is none.
const CellDef* find_cell(std::string_view name);
std::span<const CellDef> all_cells();

// The states after a step from those before it: an element of each. `x` and `h` are the input's and
// h's part of the gates, in PyTorch's order (lstm: input, forget, cell, output; gru: reset, update,
// new).
template <class T>
std::vector<T> step_cell(Cell cell, std::span<const T> x, std::span<const T> h,
                         std::span<const T> states) {
  switch (cell) {
    case Cell::lstm: {
      // One after the other: compilers differ in which operand they evaluate first.
      const T input = sigmoid(x[0] + h[0]), kept = sigmoid(x[1] + h[1]) * states[1];
      const T candidate = tanh(x[2] + h[2]), output = sigmoid(x[3] + h[3]);
      const T c = kept + input * candidate;
      return {output * tanh(c), c};
    }
    case Cell::gru: {
      const T reset = sigmoid(x[0] + h[0]), update = sigmoid(x[1] + h[1]);
      const T candidate = tanh(x[2] + reset * h[2]);
      return {(states[0] - candidate) * update + candidate};
    }
    case Cell::rnn_tanh:
      return {tanh(x[0] + h[0])};
    case Cell::rnn_relu:
      return {max(x[0] + h[0], 0.0)};
  }
  return {};
}

// One direction of one layer over [T][B] inputs; gates of `hidden` columns each are numbered
// through.
struct LayerSteps {
  Cell cell;
  int64_t gates, steps, batch, hidden;
  bool is_reversed = false;
  std::function<double(int64_t t, int64_t b, int64_t gate)> gate_of_x = {};
  std::function<double(int64_t k, int64_t gate)> weight = {};
  std::function<double(int64_t gate)> bias = {};  // added to h's part
  std::function<void(int64_t t, int64_t b, int64_t j, double h)> output = {};
  // `states` are each [B][hidden], before the first step and after the last one.
  void run(std::vector<std::vector<double>>& states) const;
};

}  // namespace lathe
