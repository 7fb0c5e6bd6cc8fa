// What the references of lstm and of its layers compute.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace lathe {

// One direction of one layer over [T][B] inputs. Gates are numbered in PyTorch's order (input,
// forget, cell, output), each of `hidden` columns.
struct LstmSteps {
  int64_t steps, batch, hidden;
  bool is_reversed = false;
  std::function<double(int64_t t, int64_t b, int64_t gate)> gate_of_x = {};
  std::function<double(int64_t k, int64_t gate)> weight = {};
  std::function<void(int64_t t, int64_t b, int64_t j, double h)> output = {};
  // `h` and `c` are [B][hidden], before the first step and after the last one.
  void run(std::vector<double>& h, std::vector<double>& c) const;
};

}  // namespace lathe
