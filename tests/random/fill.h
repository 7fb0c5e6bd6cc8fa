// How the elements of an input or weight are drawn: a line of text stands for any number of them,
// so that a failing graph with its values is a small file.
#pragma once
#include <string>
#include <string_view>

#include "ir/graph/tensor.h"
#include "ir/support/result.h"

namespace lathe::random_graphs {

struct Fill {
  enum class Kind : uint8_t {
    quarters,  // multiples of 1/4 in [low, high]: sums and products of a few are exact
    reals,     // in [low, high), rounded to the dtype
    integers,  // in [low, high]
    specials,  // quarters, and now and then an infinity, a NaN or a negative zero
  };
  Kind kind = Kind::quarters;
  double low = -2;
  double high = 2;
  uint64_t seed = 0;
};

// Elements depend on the seed and their position alone. Values that the dtype lacks are rounded to
// it; bools are the integers' lowest bits.
Tensor fill(const Fill& how, DType dtype, const std::vector<int64_t>& shape);

// "quarters -2 2 seed 17", and back.
std::string print(const Fill& how);
Result<Fill> parse_fill(std::string_view text);

}  // namespace lathe::random_graphs
