// The rule by which a result is right: the interpreter's word (DESIGN 3.9).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/eval.h"
#include "ir/graph/node.h"
#include "ir/graph/tensor.h"
#include "ir/support/result.h"

namespace lathe {

// What the interpreter says: `exact` in float64 throughout, `rounded` to each value's dtype after
// every op, which stands for eager. The graph's outputs, then what it mutates, as in a program.
struct Reference {
  std::vector<Tensor> exact;
  std::vector<Tensor> rounded;
  double rounded_ms = 0;  // time of the rounded run
};

struct ReferenceOptions {
  std::map<std::string, int64_t> dims = {};         // values of symbols
  std::function<bool(double share)> progress = {};  // from 0 to 1; false stops with an error
  uint64_t max_bytes = EvalOptions().max_bytes;     // of values; beyond it is an error
  bool uses_tf32 = false;  // the rounded run, as the target that is checked does
};
// Evaluates a functional graph twice. Errors are told at places of the imported graph.
Result<Reference> evaluate_reference(const Module& module, const std::vector<Tensor>& inputs,
                                     const ReferenceOptions& how);

// The outputs and, behind them, the new contents of everything that the graph mutates.
std::vector<Tensor> results_of(EvalResult result);

struct Agreement {
  bool passed = true;
  double max_abs_error = 0;  // against the exact values; infinite when one side alone is NaN
  double rmse = 0;           // likewise, over elements that are finite in both
  double rounded_rmse = 0;   // of the rounded run: what rounding alone costs
  std::string why = {};      // a sentence when it failed
};

// Passes when every element is close (relative, and absolute times the RMS of the exact values:
// 1e-4 in f32, 2e-2 in f16 and bf16), or when both the RMSE and the largest error are at most 3
// times the rounded run's.
// Integers and bools must equal the exact or the rounded ones. A wrong dtype or shape fails.
Agreement compare(const Tensor& result, const Tensor& exact, const Tensor& rounded);

// All outputs; the worst errors, and the first failure with the output's number.
Agreement compare(const std::vector<Tensor>& results, const Reference& reference);

}  // namespace lathe
