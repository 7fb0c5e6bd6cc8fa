// The launches of a build: what each is, what it was predicted to take and takes, what lost.
#pragma once
#include <string>
#include <vector>

#include "frontend/driver/build.h"
#include "ir/cost/price.h"

namespace lathe {

struct LaunchRow {
  const Launch* launch = nullptr;  // of the build
  double seconds = 0;              // measured; 0 when it was not
  Price price = {};
  const KernelChoice* choice =
      nullptr;  // of the region that it is of; null: of none that was chosen

  // How far it is from its limit; 0 when it was not measured.
  double from_limit() const { return price.limit > 0 ? seconds / price.limit : 0; }
};

// Of the steps, in order; `seconds` is empty, or one for each.
std::vector<LaunchRow> describe_launches(const Build& made, const Target& target,
                                         const std::vector<double>& seconds);
// {"launches": [{"label", "kernel", "seconds", "predicted", "limit", "bound", "candidates", ...}]}
std::string to_json(const std::vector<LaunchRow>& rows);

}  // namespace lathe
