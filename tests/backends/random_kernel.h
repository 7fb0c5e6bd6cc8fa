// Random scheduled kernels, for comparing emitters with the evaluator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/loop/node.h"

namespace lathe {

// Valid for every seed: in bounds, every register and scratch element written before it is read,
// parallel iterations independent. Uses nested serial and unroll loops (some empty), register
// arrays, branches, lets, masks, gathers, scatters, all dtypes and lane reductions. Leaves out what
// is defined loosely: casts out of range, the last bit of doubly rounded halves, dots of pairs that
// are not exact; and fma and dots, when a target has none.
struct Multipliers {
  bool has_fma = true;
  bool has_pair_dot = false;
};
loop::Kernel make_random_kernel(uint64_t seed, Multipliers target = {});

// Bytes for the kernel's global buffers: finite values of moderate size.
std::vector<std::vector<std::byte>> make_random_memory(const loop::Kernel& kernel, uint64_t seed);

// The first element where two buffers differ, or -1. Any NaN equals any NaN, and -0 equals 0.
int64_t first_difference(DType dtype, const std::vector<std::byte>& a,
                         const std::vector<std::byte>& b);

}  // namespace lathe
