// Values of symbolic sizes from actual ones.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "ir/type/tensor_type.h"

namespace lathe {

// A shape that an input must have, and the extents it has.
struct ShapeBinding {
  std::string name;  // of the input, for errors
  Shape expected;
  std::vector<int64_t> actual;
};

// Finds the value of every symbol of the expected shapes, starting from `known`: a dim with one
// unknown symbol is solved for it when it is linear there (s0, 8*s0, 2*s0 + 1). Then checks every
// dim, and the values against `ranges`. Errors say which input and dim does not fit, or which
// symbol no input determines.
Result<std::map<std::string, int64_t>> bind_symbols(const std::vector<ShapeBinding>& bindings,
                                                    const std::map<std::string, DimRange>& ranges,
                                                    std::map<std::string, int64_t> known = {});

}  // namespace lathe
