// Interleaved timing.
#include "frontend/driver/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

double Samples::quantile(double q) const {
  if (milliseconds.empty()) return 0;
  std::vector<double> sorted = milliseconds;
  std::sort(sorted.begin(), sorted.end());
  double position = q * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<size_t>(std::floor(position));
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

Result<std::vector<Samples>> measure(const std::vector<std::function<Status()>>& candidates,
                                     const MeasureOptions& options,
                                     const std::function<bool(double share)>& progress) {
  std::vector<Samples> samples(candidates.size());
  for (int i = 0; i < options.warmup; ++i)
    for (const auto& run : candidates) LATHE_DO(run());
  std::vector<double> spent_ms(candidates.size(), 0);
  for (int round = 0; round < options.max_samples; ++round) {
    double least_ms =
        spent_ms.empty() ? options.min_ms : *std::min_element(spent_ms.begin(), spent_ms.end());
    if (round >= options.repeats && least_ms >= options.min_ms) break;
    double share = std::min(round / static_cast<double>(options.repeats),
                            options.min_ms > 0 ? least_ms / options.min_ms : 1.0);
    if (progress && !progress(std::min(share, 1.0)))
      return Diag{code::kUnsupported, Loc::unknown(), "stopped while measuring"};
    for (size_t i = 0; i < candidates.size(); ++i) {
      auto start = std::chrono::steady_clock::now();
      LATHE_DO(candidates[i]());
      samples[i].milliseconds.push_back(milliseconds_since(start));
      spent_ms[i] += samples[i].milliseconds.back();
    }
  }
  return samples;
}

}  // namespace lathe
