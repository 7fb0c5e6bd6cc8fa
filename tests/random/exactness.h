// Which results any right implementation computes to the last bit, whatever order it adds in.
//
// Values are exact when they come from exact ones by moves, by single operations whose result the
// dtype holds, or by sums whose every partial sum is a multiple of one step and fits the mantissa.
// Ops that jump (floor, comparisons, casts to integers, argmax) are only fair on exact operands.
#pragma once
#include <span>

#include "ir/graph/node.h"
#include "ir/graph/tensor.h"

namespace lathe::random_graphs {

// A float result of the op is discontinuous in its operands; other jumps show in result types.
bool jumps(const Node& node);

// Given exact operands: whether the results are exact. `operands` may hold null.
bool stays_exact(const Node& node, std::span<const Tensor* const> operands,
                 std::span<const Tensor> results);

// 2^-p for a mantissa of p bits: the most that rounding to nearest changes, relative to the value.
// Eight times that for f64, in which the exact values are computed too.
double unit_roundoff(DType dtype);

}  // namespace lathe::random_graphs
