// Runs a scheduled kernel in the loop evaluator.
#pragma once
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "ir/loop/node.h"
#include "ir/loop/text.h"

namespace lathe {

using Floats = std::vector<float>;

template <class T>
loop::Memory memory_of(std::vector<T>& buffer) {
  return {reinterpret_cast<std::byte*>(buffer.data()), buffer.size() * sizeof(T)};
}

// Verifies and runs within `steps`; `memory` in the order of the kernel's global buffers.
inline void run_in_memory(const loop::Kernel& kernel, std::vector<loop::Memory> memory,
                          loop::StepBudget steps = {}) {
  Status verified = loop::verify(kernel, true);
  ASSERT_TRUE(verified.ok()) << verified.error().message << "\n" << loop::print(kernel);
  Status ran = loop::evaluate(kernel, memory, {}, steps);
  ASSERT_TRUE(ran.ok()) << ran.error().message << "\n" << loop::print(kernel);
}
inline void run_kernel(const loop::Kernel& kernel, std::vector<Floats*> buffers,
                       loop::StepBudget steps = {}) {
  std::vector<loop::Memory> memory;
  for (Floats* buffer : buffers) memory.push_back(memory_of(*buffer));
  run_in_memory(kernel, std::move(memory), steps);
}

// Small numbers that differ from their neighbours, exact in f32.
inline Floats numbers(int64_t count, int seed) {
  Floats result(static_cast<size_t>(count));
  uint32_t state = 12345u + static_cast<uint32_t>(seed) * 7919u;
  for (float& value : result) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(state >> 24) - 128) / 64.0f;
  }
  return result;
}

}  // namespace lathe
