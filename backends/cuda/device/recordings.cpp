// Which calls are recorded: see recordings.h.
#include "backends/cuda/device/recordings.h"

#include <algorithm>

namespace lathe::cuda {

Recordings::Advice Recordings::ask(const Places& places) {
  if (find(places) != nullptr) {
    num_strange_ = 0;
    return Advice::replay;
  }
  const auto known = std::find(strangers_.begin(), strangers_.end(), places);
  if (known != strangers_.end()) {
    strangers_.erase(known);
    num_strange_ = 0;
    return Advice::record;
  }
  strangers_.push_back(places);
  if (strangers_.size() > kMostStrangers) strangers_.erase(strangers_.begin());
  if (num_strange_ == kMostStrangers) return Advice::stage;
  ++num_strange_;
  return Advice::run;
}

CUgraphExec Recordings::find(const Places& places) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& each) { return each.places == places; });
  if (found == kept_.end()) return nullptr;
  std::rotate(found, found + 1, kept_.end());
  return kept_.back().recording;
}

CUgraphExec Recordings::keep(const Places& places, CUgraphExec recording) {
  CUgraphExec oldest = nullptr;
  if (kept_.size() == kMost) {
    oldest = kept_.front().recording;
    kept_.erase(kept_.begin());
  }
  kept_.push_back({places, recording});
  return oldest;
}

std::vector<CUgraphExec> Recordings::take() {
  std::vector<CUgraphExec> all;
  for (const Kept& each : kept_) all.push_back(each.recording);
  kept_.clear();
  return all;
}

}  // namespace lathe::cuda
