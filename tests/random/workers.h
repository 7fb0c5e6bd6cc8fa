// Runs judgements in processes of their own, so that a crash or a hang is a verdict too.
#pragma once
#include <cstdint>
#include <functional>

#include "tests/random/run_case.h"

namespace lathe::random_graphs {

struct WorkOptions {
  uint64_t first = 0;
  uint64_t count = 1;
  int jobs = 1;
  uint64_t batch = 100;  // judgements of one process
  int patience_s = 60;   // of processor time for one judgement, or ten times that on the clock
};

// Calls judge(index, coverage) for every index in a child process and on_verdict here, in no
// particular order. Coverage is summed up over the children that end well. on_verdict returns
// false to stop.
Coverage work(const WorkOptions& options, const std::function<Verdict(uint64_t, Coverage&)>& judge,
              const std::function<bool(uint64_t, const Verdict&)>& on_verdict);

// One judgement.
Verdict judge_apart(const std::function<Verdict()>& judge);

}  // namespace lathe::random_graphs
