// The mathematical functions whose errors are kept: every op whose row has a scalar formula in
// floats, with what it means exactly.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

struct MathFunction {
  std::string name;  // in the table
  std::string call;  // "elu(%x) {alpha = 0.5}"; %y is there too
  double (*exact)(double x, double y);
  // Errors count in units of the exact result's last place, but in none smaller than this: what
  // the formula, which is PyTorch's own, cannot know. Null: the smallest subnormal.
  double (*least_unit)(double x) = nullptr;
};
const std::vector<MathFunction>& math_functions();

// %x, %y: f32[size] to one f32[size] for each function, in order.
Result<Module> math_module(int64_t size);

// The second operand beside x: the exponent of powers, the other coordinate of angles. A function
// of x, so that an operand is found again by x alone.
float second_operand(uint32_t bits_of_x);

}  // namespace lathe
