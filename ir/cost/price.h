// Seconds that a launch is predicted to take on one core of a target, and what it is bound by. Of
// targets whose threads share vectors (GPUs) nothing is predicted: every figure is 0.
#pragma once
#include <cstdint>

#include "ir/program/program.h"
#include "ir/target/target.h"

namespace lathe {

enum class Bound : uint8_t { arithmetic, memory, launch };
const char* bound_name(Bound bound);

struct Price {
  double seconds = 0;
  double arithmetic = 0;  // seconds of the core with everything in its first cache
  double memory = 0;      // seconds of moving bytes to there
  double limit = 0;       // seconds that any launch needs: a start, its flops, or its bytes once
  Bound bound = Bound::launch;
};

// `weight_bytes` is what all launches of a run read of persistent buffers: when it is more than a
// cache holds, a weight comes from behind that cache.
Price predict(const Program& program, const Launch& launch, const Target& target,
              double weight_bytes);
// Of the persistent and weight buffers that the steps read.
double weight_bytes(const Program& program);

}  // namespace lathe
