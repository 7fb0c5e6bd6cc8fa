// Inputs of a graph under test, the same each time.
#pragma once
#include <vector>

#include "ir/graph/node.h"
#include "tests/ops/example_case.h"

namespace lathe {

// One for each param; positions, which are i64, from -4 to 3.
inline std::vector<Tensor> inputs_of(const Module& module) {
  std::vector<Tensor> inputs;
  for (const auto& param : module.main().params) {
    const TensorType& type = param->types[0];
    const bool is_position = type.dtype == DType::i64;
    inputs.push_back(example_tensor({.dtype = type.dtype,
                                     .shape = type.static_shape(),
                                     .low = is_position ? -4.0 : 0.0 - (type.dtype != DType::u8),
                                     .high = is_position ? 4.0 : 2.0},
                                    inputs.size() + 1));
  }
  return inputs;
}

}  // namespace lathe
