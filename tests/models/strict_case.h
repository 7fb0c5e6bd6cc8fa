// Runs one model on one target with the numerics that are asked for, to compare bits.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/tensor.h"
#include "ir/support/result.h"

namespace lathe {

// Whether this machine has a target ("cpu avx2"): what it lacks, when not. Asked before anything
// runs, so that a run that fails is a failure.
Status check_target(const std::string& target);

// The outputs on one target. Models of tests/fixtures have weights and inputs; others get those of
// seed 0.
Result<std::vector<Tensor>> outputs_of(const std::string& path, const std::string& target,
                                       const std::string& numerics);

// Elements whose bits differ; NaN payloads are exempt.
int64_t count_different(const Tensor& a, const Tensor& b);

// Strict results of `target` are those of AVX2, which every machine has that native code runs on.
void expect_bits_of_avx2(const std::string& path, const std::string& target);

}  // namespace lathe
