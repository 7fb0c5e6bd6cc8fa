// Times functions that compete: warmed up, interleaved in one process, so that a slow moment of
// the machine falls on all of them.
#pragma once
#include <functional>
#include <vector>

#include "ir/support/result.h"

namespace lathe {

struct MeasureOptions {
  int warmup = 3;       // runs of each that are not counted
  int repeats = 20;     // least number of samples of each
  double min_ms = 100;  // least time spent in the samples of each
  int max_samples = 10000;
};

struct Samples {
  std::vector<double> milliseconds;  // in the order they were taken
  // The value below which the share `q` of the samples lies, between neighbours linear; 0 when
  // there are none.
  double quantile(double q) const;
  double median() const { return quantile(0.5); }
};

// One entry per candidate. Rounds go on until every candidate has its samples and its time; a
// candidate that fails ends them. `progress` gets a share from 0 to 1; false stops with an error.
Result<std::vector<Samples>> measure(const std::vector<std::function<Status()>>& candidates,
                                     const MeasureOptions& options,
                                     const std::function<bool(double share)>& progress = {});

}  // namespace lathe
