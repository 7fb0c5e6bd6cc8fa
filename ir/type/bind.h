// Values of symbolic sizes from actual ones.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "ir/type/guard.h"
#include "ir/type/tensor_type.h"

namespace lathe {

// A shape that an input must have, and the extents it has.
struct ShapeBinding {
  std::string name;  // of the input, for errors
  Shape expected;
  std::vector<int64_t> actual = {};
  bool is_number = false;  // an integer argument: its value stands for an extent
};

// What a graph is for: sizes within ranges that no guard forbids. Borrowed.
struct SizeRules {
  const std::map<std::string, DimRange>& ranges;
  const std::vector<Guard>& guards;
};

// The error when `symbols` leave their ranges, which names the input that has such a size, or when
// a guard forbids them, at the line that needs it. Symbols without a value are not judged.
Status check_sizes(const std::vector<ShapeBinding>& inputs, const SizeRules& rules,
                   const std::map<std::string, int64_t>& symbols);

// Finds the value of every symbol of the expected shapes, starting from `known`: a dim with one
// unknown symbol is solved for it when it is linear there (s0, 8*s0, 2*s0 + 1). Then checks every
// dim, and the values as check_sizes does. Errors say which input and dim does not fit, or which
// symbol no input determines.
Result<std::map<std::string, int64_t>> bind_symbols(const std::vector<ShapeBinding>& bindings,
                                                    const SizeRules& rules,
                                                    std::map<std::string, int64_t> known = {});

}  // namespace lathe
