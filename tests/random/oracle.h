// What a case must return: float64 values, and how far each element may be off.
//
// An element may differ from the exact one by
//   kSpread * max(its spread, the RMS spread of its tensor) + kRoundings * u * RMS + tiny
// where the spread is the largest difference that runs with noise (eager.h) show. kSpread = 16
// makes up for the few runs that sample the noise and for functions that are right to a few units
// in the last place instead of half a one; the second term stands for elements that every noisy run
// leaves alone, as relu does below zero; tiny is the dtype's smallest subnormal, or normal where
// units may flush. Exact tensors must be equal, integers always; NaN matches NaN, infinities their
// own sign.
//
// A result that disagrees after kFewRuns is judged again after kManyRuns: a sum that is near zero
// and times infinity is NaN only in the runs in which it is zero.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/tensor.h"
#include "ir/support/result.h"
#include "tests/random/case.h"

namespace lathe::random_graphs {

struct Expected {
  Tensor exact;
  std::vector<double> tolerance;  // per element; empty: equal
  bool is_telling = true;         // false: so ill-conditioned that agreement says nothing
};

// The outputs of the graph, then the params that in-place nodes write, in their order.
struct Oracle {
  std::vector<Expected> outputs;
  std::vector<Expected> params;  // every param after the run
};
inline constexpr int kFewRuns = 3, kManyRuns = 32;
Result<Oracle> ask_oracle(const Case& test, bool uses_tf32, int num_noisy_runs = kFewRuns);

// Empty when it agrees; else the first element that does not, as a sentence.
std::string disagreement(const Tensor& result, const Expected& expected);

}  // namespace lathe::random_graphs
