// Products and sums seen as flat lists, however they are nested.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/node.h"
#include "passes/analysis/uses.h"

namespace lathe {

// scalar * factors[0] * factors[1] * ...
struct Product {
  double scalar = 1;
  std::vector<Value> factors;
};
// Looks through mul, and div by a splat; square(x), pow(x, 2) and pow(x, 3) count x that often.
// Inner nodes must have no other reader; the outermost may.
Product flatten_product(Value value, const UseCounts& uses);

// scalar + terms[0] + terms[1] + ..., through add and sub of a splat, in the same way.
struct Sum {
  double scalar = 0;
  std::vector<Value> terms;
};
Sum flatten_sum(Value value, const UseCounts& uses);

// Removes one `value` from the list; false when it is not there.
bool take(std::vector<Value>& list, Value value);

// |a - b| is small against |b|: exporters round constants differently.
bool is_near(double a, double b);

}  // namespace lathe
